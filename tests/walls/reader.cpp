#include "reader.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace walls {
namespace {

using Texts = std::set<std::string_view>;

struct Token {
  enum class Kind { name, number, string, sign };
  Kind kind;
  std::string_view text;
};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Splits text into tokens without comments and directives.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> read() {
    bool begins_line = true;  // only spaces and comments precede on the line
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_space(c)) {
        begins_line = begins_line || c == '\n';
        ++at_;
      } else if (rest().starts_with("//")) {
        at_ = end_of_line();
      } else if (rest().starts_with("/*")) {
        at_ = after("*/", at_ + 2);
      } else if (c == '#' && begins_line) {
        read_directive();
      } else {
        begins_line = false;
        read_token();
      }
    }
    return std::move(tokens_);
  }

 private:
  // An `#if` whose `#endif` has not been read.
  struct Condition {
    std::size_t first;        // token of the branch that is being read
    bool skips = false;       // that branch
    bool skips_rest = false;  // the branches after it
    bool has_branch = false;  // a branch has been read and kept
  };

  std::string_view rest() const { return text_.substr(at_); }

  std::size_t after(std::string_view end, std::size_t from) const {
    const auto found = text_.find(end, from);
    return found == text_.npos ? text_.size() : found + end.size();
  }

  // A backslash continues a line.
  std::size_t end_of_line() const {
    auto end = std::min(text_.find('\n', at_), text_.size());
    while (end < text_.size() && text_[end - 1] == '\\')
      end = std::min(text_.find('\n', end + 1), text_.size());
    return end;
  }

  void read_directive() {
    const auto end = end_of_line();
    auto line = text_.substr(at_ + 1, end - at_ - 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    at_ = end;
    if (line.starts_with("if")) {
      conditions_.push_back({tokens_.size(), line == "if 0"});
    } else if (line.starts_with("el") && !conditions_.empty()) {
      end_branch(conditions_.back());
    } else if (line.starts_with("endif") && !conditions_.empty()) {
      end_branch(conditions_.back());
      conditions_.pop_back();
    }
  }

  void end_branch(Condition& condition) {
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(condition.first);
    const auto number_of = [&](std::string_view sign) {
      return std::count_if(first, tokens_.end(), [&](const Token& token) { return token.text == sign; });
    };
    const bool matches = number_of("{") == number_of("}") && number_of("(") == number_of(")");
    if (condition.skips || (!matches && condition.has_branch)) {
      tokens_.erase(first, tokens_.end());
    } else {
      condition.has_branch = true;
      condition.skips_rest = !matches;
    }
    condition.skips = condition.skips_rest;
    condition.first = tokens_.size();
  }

  void read_token() {
    static const Texts raw{"R", "LR", "uR", "UR", "u8R"};
    const char c = text_[at_];
    const std::size_t begin = at_;
    if (c == '"' || c == '\'') return read_string();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return read_number();
    if (!is_letter(c)) return read_sign();
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    if (!rest().starts_with('"') || !raw.contains(text_.substr(begin, at_ - begin)))
      return add(Token::Kind::name, begin);
    const auto open = std::min(text_.find('(', at_), text_.size() - 1);
    at_ = after(")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"", open);
    add(Token::Kind::string, begin);
  }

  void read_string() {
    const std::size_t begin = at_;
    const char quote = text_[at_];
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) at_ += text_[at_] == '\\' ? 1U : 0U;
    at_ = std::min(at_ + 1, text_.size());
    add(Token::Kind::string, begin);
  }

  // Separators of digits and signs of exponents are parts of numbers.
  void read_number() {
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool is_separator = c == '\'' && at_ + 1 < text_.size() && is_letter(text_[at_ + 1]);
      const char last = static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_ - 1])));
      const bool is_hexadecimal = text_.substr(begin, 2) == "0x";
      const bool is_exponent = (c == '+' || c == '-') && last == (is_hexadecimal ? 'p' : 'e');
      if (!is_letter(c) && c != '.' && !is_separator && !is_exponent) break;
    }
    add(Token::Kind::number, begin);
  }

  // `>>` is two signs, because it may end two lists of template arguments.
  void read_sign() {
    static const std::vector<std::string_view> signs{"<=>", "...", "->*", "::", "->", "&&", "||", "<<",
                                                     "<=",  ">=",  "==",  "!=", "&=", "|=", "+=", "-=",
                                                     "*=",  "/=",  "%=",  "^=", "++", "--"};
    const std::size_t begin = at_;
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](auto s) { return rest().starts_with(s); });
    at_ += sign != signs.end() ? sign->size() : 1;
    add(Token::Kind::sign, begin);
  }

  void add(Token::Kind kind, std::size_t begin) {
    tokens_.push_back({kind, text_.substr(begin, at_ - begin)});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  std::vector<Condition> conditions_;
};

/// The tokens of a file. Functions named `skip_...` return the place after the tokens that they pass.
class Tokens {
 public:
  explicit Tokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Returns whether each bracket has a counterpart.
  bool match_brackets() {
    static const std::map<std::string_view, std::string_view> closing{{"(", ")"}, {"[", "]"}, {"{", "}"}};
    std::vector<std::size_t> open;
    closes_.resize(tokens_.size());
    for (std::size_t at = 0; at < tokens_.size(); ++at) {
      if (tokens_[at].kind != Token::Kind::sign) continue;
      if (closing.contains(text(at))) {
        open.push_back(at);
      } else if (is_one_of(at, {")", "]", "}"})) {
        if (open.empty() || closing.at(text(open.back())) != text(at)) return false;
        closes_[open.back()] = at;
        open.pop_back();
      }
    }
    return open.empty();
  }

  std::size_t size() const { return tokens_.size(); }
  // Returns the place of the counterpart of an opening bracket.
  std::size_t close_of(std::size_t open) const { return closes_[open]; }
  std::string_view text(std::size_t at) const { return at < tokens_.size() ? tokens_[at].text : ""; }
  bool is(std::size_t at, std::string_view sign) const { return text(at) == sign; }
  bool is_one_of(std::size_t at, std::initializer_list<std::string_view> texts) const {
    return std::find(texts.begin(), texts.end(), text(at)) != texts.end();
  }
  bool is_name(std::size_t at) const { return at < tokens_.size() && tokens_[at].kind == Token::Kind::name; }
  bool is_sign(std::size_t at) const { return at < tokens_.size() && tokens_[at].kind == Token::Kind::sign; }
  bool is_string(std::size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == Token::Kind::string;
  }
  bool opens(std::size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == Token::Kind::sign && is_one_of(at, {"(", "[", "{"});
  }

  // "WYE_API"; one letter is a type.
  bool is_macro(std::size_t at) const {
    return is_name(at) && text(at).size() > 1 && std::all_of(text(at).begin(), text(at).end(), [](char c) {
             return c == '_' || is_digit(c) || std::isupper(static_cast<unsigned char>(c)) != 0;
           });
  }

  std::size_t skip(std::size_t at) const { return opens(at) ? closes_[at] + 1 : at + 1; }
  std::size_t skip_if(std::size_t at, std::string_view open) const { return is(at, open) ? skip(at) : at; }

  // Passes a list of template arguments, or `<` alone if it begins none.
  std::size_t skip_angles(std::size_t at) const {
    int depth = 0;
    for (std::size_t next = at; next < tokens_.size(); next = skip(next)) {
      depth += is(next, "<") ? 1 : is(next, ">") ? -1 : 0;
      if (depth == 0) return next + 1;
      if (is_one_of(next, {";", ")", "]", "}"})) break;
    }
    return at + 1;
  }

  // Passes a token, or all up to the counterpart of a bracket.
  std::size_t skip_any(std::size_t at) const { return is(at, "<") ? skip_angles(at) : skip(at); }

  // Passes a chain of names as in `a::b<c>::d`.
  std::size_t skip_chain(std::size_t at) const {
    for (at += is(at, "::") ? 1U : 0U; is_name(at);) {
      at = is(at + 1, "<") ? skip_angles(at + 1) : at + 1;
      if (!is(at, "::")) break;
      ++at;
    }
    return at;
  }

  // Passes the condition after `requires`.
  std::size_t skip_constraint(std::size_t at) const {
    for (;; ++at) {
      if (is(at, "requires")) {
        at = skip_if(skip_if(at + 1, "("), "{");
      } else {
        at = is(at, "(") ? skip(at) : skip_chain(at);
      }
      if (!is(at, "&&") && !is(at, "||")) return at;
    }
  }

  // Passes `template <...> requires ...`, if it is there.
  std::size_t skip_template(std::size_t at) const {
    while (is(at, "template")) {
      at = is(at + 1, "<") ? skip_angles(at + 1) : at + 1;
      if (is(at, "requires")) at = skip_constraint(at + 1);
    }
    return at;
  }

  std::size_t skip_statement(std::size_t at) const {
    while (at < tokens_.size() && !is(at, ";")) at = skip(at);
    return at + 1;
  }

  // Passes an initialiser or the width of a bit field.
  std::size_t skip_initialiser(std::size_t at) const {
    while (at < tokens_.size() && !is_one_of(at, {",", ";", "}"})) at = compares(at) ? at + 1 : skip_any(at);
    return at;
  }

  // Returns whether `<` in an expression is an operator: a list of template arguments has no other
  // operators outside of brackets.
  bool compares(std::size_t at) const {
    if (!is(at, "<")) return false;
    const std::size_t end = skip_angles(at);
    for (std::size_t next = at; next < end; next = skip(next))
      if (is_one_of(next, {"?", "=", "||"}) || (is(next, "&&") && !is_one_of(next + 1, {">", ",", "..."})))
        return true;
    return false;
  }

  // Passes the type of a result after the parameter list.
  std::size_t skip_result(std::size_t at) const {
    static const Texts ends{"{", ";", "=", "requires", "override", "final", "try"};
    while (at < tokens_.size() && !ends.contains(text(at))) at = skip_any(at);
    return at;
  }

 private:
  std::vector<Token> tokens_;
  std::vector<std::size_t> closes_;  // the place of the counterpart of each opening bracket
};

/// Reads declarations. Functions named `read_...` take the place of a token and return the place
/// after the tokens that they have read.
class Reader : private Tokens {
 public:
  using Tokens::Tokens;

  Sizes read() {
    if (!match_brackets()) return {{}, false};
    for (std::size_t at = 0; at < size();) at = read_declaration(at, nullptr);
    return {named(), true};
  }

 private:
  struct Class {
    std::string path;  // "Core::Ready"; empty if the class has no name
    std::string name;  // "Ready"
    long functions = 0;
    long members = 0;
  };

  // A declaration up to the place that is being read.
  struct Declaration {
    Class* of = nullptr;       // the class whose body contains it
    std::string name;          // the last one, with its qualification
    int words = 0;             // a type and a name are two
    std::size_t name_end = 0;  // the place after it and its template arguments
    bool is_static = false;
    bool counts = true;  // it is neither a friend nor an alias

    std::string path() const { return of && !of->path.empty() ? of->path + "::" + name : name; }
  };

  // Of equal kinds and names, the largest keeps its name; "(2)" is added to the next one.
  std::vector<Size> named() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Size& a, const Size& b) { return a.count > b.count; });
    std::map<std::pair<std::string, std::string>, int> times;
    for (Size& size : found_) {
      const int time = ++times[{size.kind, size.name}];
      if (time > 1) size.name += " (" + std::to_string(time) + ")";
    }
    return std::move(found_);
  }

  void read_scope(std::size_t open, Class* of) {
    for (std::size_t at = open + 1; at < close_of(open);) at = read_declaration(at, of);
  }

  std::size_t read_declaration(std::size_t at, Class* of) {
    if (is_one_of(at, {"public", "private", "protected"}) && is(at + 1, ":")) return at + 2;
    if (is_one_of(at, {"using", "static_assert", "concept"})) return skip_statement(at);
    if (is(at, "namespace") || (is(at, "inline") && is(at + 1, "namespace"))) return read_namespace(at);
    if (is(at, "extern") && is(at + 2, "{")) return read_namespace(at);
    if (is(at, "template")) {
      at = skip_template(at);
      return is(at, "concept") ? skip_statement(at) : read_declarators(at, of);
    }
    return opens(at) ? skip(at) : read_declarators(at, of);
  }

  std::size_t read_namespace(std::size_t at) {
    while (at < size() && !is(at, "{") && !is(at, ";")) ++at;
    if (!is(at, "{")) return at + 1;
    read_scope(at, nullptr);
    return skip(at);
  }

  std::size_t read_declarators(std::size_t at, Class* of) {
    Declaration declaration;
    declaration.of = of;
    while (at < size()) {
      if (is(at, ";") || is(at, ",")) {
        end_declarator(declaration);
        if (is(at++, ";")) break;
      } else if (is(at, "}")) {
        break;
      } else if (is(at, "(")) {
        if (const auto name = name_of_pointer(at)) {
          declaration.name = *name;
          ++declaration.words;
          if (is_function(at)) return read_function(skip(at), declaration);
          at = skip_if(skip(at), "(");
        } else {
          return read_function(at, declaration);
        }
      } else if (is(at, "=") || is(at, "{") || is(at, ":")) {
        const std::size_t end = is(at, "{") ? skip(at) : skip_initialiser(at + 1);
        read_variable(at, end, declaration);
        at = end;
      } else if (is(at, "<")) {
        const std::size_t end = skip_angles(at);
        if (declaration.name_end == at) declaration.name_end = end;
        at = end;
      } else if (is(at, "::") || is(at, "~")) {
        extend(declaration, at++);
      } else {
        at = is_name(at) ? read_name(at, declaration) : skip(at);
      }
    }
    return at;
  }

  // Returns whether the token belongs to the last name, as `::` and `c` in `a<b>::c`.
  bool continues(const Declaration& declaration, std::size_t at) const {
    return declaration.name_end == at && (is(at, "::") || is_one_of(at - 1, {"::", "~"}));
  }

  // Adds the token to the last name, or begins a name with it.
  void extend(Declaration& declaration, std::size_t at) const {
    if (!continues(declaration, at)) {
      declaration.name.clear();
      ++declaration.words;
    }
    declaration.name += text(at);
    declaration.name_end = at + 1;
  }

  void end_declarator(Declaration& declaration) {
    if (declaration.of && declaration.words > 1 && declaration.counts && !declaration.is_static)
      ++declaration.of->members;
    declaration.words = std::min(declaration.words, 1);
  }

  // Reads the initialiser of a variable or member, or the width of a bit field. Its lambdas belong to
  // the variable.
  void read_variable(std::size_t at, std::size_t end, Declaration& declaration) {
    static const Texts types{"int", "unsigned", "char", "short", "long", "bool"};
    if (is(at, ":") && types.contains(text(at - 1))) declaration.words = 0;  // it has no name
    const long branches = count_branches(at, end, declaration.path());
    if (branches > 0) found_.push_back({"function-branches", declaration.path(), branches + 1});
  }

  // Returns the name in `(*name)`, if that begins at `at`.
  std::optional<std::string> name_of_pointer(std::size_t at) const {
    std::size_t first = at + 1;
    while (is_name(first) && is(first + 1, "::")) first += 2;
    if (!is_one_of(first, {"*", "&", "&&"})) return std::nullopt;
    std::string name;
    for (++first; first < close_of(at) && !opens(first); ++first)
      if (is_name(first) && !is(first, "const")) name = text(first);
    return name;
  }

  // Returns whether `(*name(int))` declares a function, whose result is a pointer to a function.
  bool is_function(std::size_t at) const {
    for (std::size_t next = at + 1; next < close_of(at); ++next)
      if (is(next, "(")) return true;
    return false;
  }

  std::size_t read_name(std::size_t at, Declaration& declaration) {
    static const Texts with_arguments{"alignas", "decltype", "explicit", "__attribute__"};
    static const Texts statics{"static", "thread_local", "constexpr"};
    if (is_one_of(at, {"class", "struct", "union"})) return read_class_specifier(at, declaration);
    if (is(at, "enum")) return read_enum(at, declaration);
    if (is(at, "operator")) return read_operator(at, declaration);
    if (statics.contains(text(at))) {
      declaration.is_static = true;
    } else if (is(at, "friend") || is(at, "typedef")) {
      declaration.counts = false;
    } else if (with_arguments.contains(text(at)) && is(at + 1, "(")) {
      ++declaration.words;
      return skip(at + 1);
    } else {
      extend(declaration, at);
    }
    return at + 1;
  }

  std::size_t read_enum(std::size_t at, Declaration& declaration) {
    while (at < size() && !is_one_of(at, {"{", ";", "(", "="})) {
      // `enum Color color;`
      if (is_name(at) && is_name(at + 1) && is_one_of(at + 2, {";", "=", "{", "("}) &&
          !is_one_of(at, {"enum", "class", "struct"}))
        break;
      ++at;
    }
    ++declaration.words;
    declaration.name.clear();
    return is(at, "{") ? skip(at) : is_name(at) ? at + 1 : at;
  }

  std::size_t read_operator(std::size_t at, Declaration& declaration) {
    std::string name = "operator";
    std::size_t next = at + 1;
    if (is(next, "(") || is(next, "[")) {
      name += is(next, "(") ? "()" : "[]";
      next = skip(next);
    }
    for (; next < size() && !is(next, "(") && !is(next, ";"); ++next) {
      if (is_name(next) && (is_name(next - 1) || is(next - 1, ">"))) name += ' ';
      name += text(next);
    }
    declaration.name = continues(declaration, at) ? declaration.name + name : name;
    declaration.words = 2;
    return next;
  }

  // Reads a class if its body follows; otherwise a name as in `class Core;` or `struct stat info`.
  std::size_t read_class_specifier(std::size_t at, Declaration& declaration) {
    ++declaration.words;
    declaration.name.clear();
    Class one;
    const std::size_t open = read_class_head(at, one);
    if (!is(open, "{")) return open;
    const bool is_anonymous = one.path.empty() && is(skip(open), ";");
    if (Class* const of = declaration.of) {
      if (!one.path.empty() && !of->path.empty()) one.path = of->path + "::" + one.path;
      if (one.path.empty()) one.path = of->path;
    }
    read_scope(open, &one);
    if (is_anonymous && declaration.of) {
      declaration.of->members += one.members;
    } else {
      std::string name = one.path;
      if (one.name.empty()) name += name.empty() ? "(unnamed)" : "::(unnamed)";
      found_.push_back({"class-functions", name, one.functions});
      found_.push_back({"class-members", name, one.members});
    }
    return skip(open);
  }

  // Reads the name and bases of the class whose keyword is at `at`. Its body follows, if it has one.
  std::size_t read_class_head(std::size_t at, Class& one) const {
    for (++at; is_before_name(at);) at = is(at, "[") ? skip(at) : skip_if(at + 1, "(");
    if (is_name(at)) {
      const std::size_t end = skip_chain(at);
      for (std::size_t part = at; part < end; part = is(part, "<") ? skip_angles(part) : part + 1) {
        if (is(part, "<")) continue;
        one.path += text(part);
        if (is_name(part)) one.name = text(part);
      }
      at = end;
    }
    at += is(at, "final") ? 1U : 0U;
    if (is(at, ":")) {
      while (at < size() && !is_one_of(at, {"{", ";", ")"})) at = skip_any(at);
    }
    return at;
  }

  // Returns whether an attribute or macro stands at `at`, between the keyword of a class and its name.
  bool is_before_name(std::size_t at) const {
    if (is(at, "[") || is(at, "alignas") || is(at, "__attribute__")) return true;
    return is_macro(at) && (is(at + 1, "(") || (is_name(at + 1) && !is(at + 1, "final")));
  }

  // Returns whether the name before a parameter list is that of a macro in a class: it has no type
  // and not the name of the class.
  static bool calls_macro(const Declaration& declaration) {
    return declaration.of && declaration.words < 2 && declaration.name != declaration.of->name &&
           !declaration.name.starts_with('~');
  }

  // Reads a function from its parameter list on.
  std::size_t read_function(std::size_t at, Declaration& declaration) {
    const bool is_macro_call = calls_macro(declaration);
    bool is_implicit = false;  // defaulted or deleted
    // A test case has the name `TEST_CASE("...")`.
    if (is_string(at + 1)) declaration.name += "(" + std::string(text(at + 1)) + ")";
    for (at = skip(at); at < size();) {
      if (is(at, "->")) {
        at = skip_result(at);
      } else if (is(at, "requires")) {
        at = skip_constraint(at + 1);
      } else if (is(at, "=")) {
        is_implicit = is(at + 1, "default") || is(at + 1, "delete");
        at = skip_initialiser(at);
      } else if (is(at, "try") || is(at, ":") || is(at, "{")) {
        at = read_body(at, declaration.path());
        break;
      } else if (is(at, ";")) {
        ++at;
        break;
      } else if (is(at, "}") || (is_name(at) && !is_qualifier(at))) {
        return at;  // after a macro call without a semicolon
      } else {
        at = skip(at);
      }
    }
    if (declaration.of && declaration.counts && !is_macro_call && !is_implicit) ++declaration.of->functions;
    return at;
  }

  // Returns whether a name may stand between parameter list and body.
  bool is_qualifier(std::size_t at) const {
    return is_one_of(at, {"const", "volatile", "noexcept", "override", "final", "mutable", "throw",
                          "__attribute__", "asm"}) ||
           (is_macro(at) && !is(at + 1, "("));
  }

  // Reads the list of initialisers of a constructor, the body and handlers of a function.
  std::size_t read_body(std::size_t at, const std::string& name) {
    const std::size_t begin = at;
    const bool has_handlers = is(at, "try");
    at += has_handlers ? 1U : 0U;
    if (is(at, ":")) {
      do {
        at = skip_if(skip(skip_chain(at + 1)), "...");
      } while (is(at, ","));
      at += is(at, "...") ? 1U : 0U;
    }
    at = skip(at);
    while (has_handlers && is(at, "catch")) at = skip(skip(at + 1));
    found_.push_back({"function-branches", name, count_branches(begin, at, name) + 1});
    return at;
  }

  // Counts decisions. Reads the classes that are defined there.
  long count_branches(std::size_t at, std::size_t end, const std::string& name) {
    static const Texts decisions{"if", "for", "while", "case", "catch", "?"};
    static const Texts unevaluated{"static_assert", "noexcept", "decltype", "sizeof", "alignas"};
    long branches = 0;
    std::size_t parameters_end = 0;  // of the parameter list that contains the token
    for (; at < end; ++at) {
      if (!is_name(at) && !is_sign(at)) continue;
      if (is_one_of(at, {"class", "struct", "union"}) && !is(at - 1, "enum")) {
        at = read_local_class(at, name);
      } else if (unevaluated.contains(text(at)) && is(at + 1, "(")) {
        at = close_of(at + 1);
        continue;
      }
      if (const auto list = parameter_list_after(at))
        parameters_end = std::max(parameters_end, close_of(*list));
      if (decisions.contains(text(at))) {
        ++branches;
      } else if (is(at, "||") || is(at, "or") || is(at, "and")) {
        branches += is(at - 1, "operator") ? 0 : 1;
      } else if (is(at, "&&") && at >= parameters_end && !is_reference(at)) {
        ++branches;
      }
    }
    return branches;
  }

  // Returns the place of the last token of a class that is defined at `at`, otherwise `at`.
  std::size_t read_local_class(std::size_t at, const std::string& name) {
    Class one;
    if (!is(read_class_head(at, one), "{")) return at;
    Class function;
    function.path = name;
    Declaration declaration;
    declaration.of = &function;
    return read_class_specifier(at, declaration) - 1;
  }

  // Returns the place of the parameter list of a lambda, handler, requires expression or function
  // type that begins at `at`.
  std::optional<std::size_t> parameter_list_after(std::size_t at) const {
    std::size_t list = at + 1;
    if (is(at, "[")) {
      static const Texts before{"return", "co_return", "co_yield", "case", "else", "do"};
      const bool is_subscript =
          at > 0 && !before.contains(text(at - 1)) && (is_name(at - 1) || is_one_of(at - 1, {")", "]"}));
      if (is_subscript) return std::nullopt;
      list = skip(at);
      if (is(list, "<")) list = skip_angles(list);
      if (is(list, "requires")) list = skip_constraint(list + 1);
    } else if (is(at, "requires")) {
      if (!is(list, "(") || !is(skip(list), "{")) return std::nullopt;
    } else if (!is(at, "void") && !is(at, "catch")) {
      return std::nullopt;
    }
    return is(list, "(") ? std::optional(list) : std::nullopt;
  }

  // Returns whether `&&` at `at` belongs to a type.
  bool is_reference(std::size_t at) const {
    if (is_one_of(at - 1, {"auto", "const", "operator"})) return true;
    if (is_one_of(at + 1, {")", ",", ">", "...", "{", ";", "="})) return true;
    if (!is_name(at + 1)) return false;
    return is(at + 2, "=") || (is(at + 2, ":") && begins_loop(at));
  }

  // Returns whether only a type stands between `for (` and the token.
  bool begins_loop(std::size_t at) const {
    while (at > 1 && (is_name(at - 1) || is_one_of(at - 1, {"::", "<", ">", ",", "*"}))) --at;
    return at > 1 && is(at - 1, "(") && is(at - 2, "for");
  }

  std::vector<Size> found_;
};

}  // namespace

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

Sizes sizes_of(std::string_view text) { return Reader(Lexer(text).read()).read(); }

}  // namespace walls
