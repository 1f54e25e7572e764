#include "reader.hpp"

#include <algorithm>
#include <string>

#include "support/catch.hpp"

namespace {

// Returns a size, or -1 if the text has none of this kind and name.
long size_of(const std::string& text, const std::string& kind, const std::string& name) {
  const auto sizes = walls::sizes_of(text);
  CHECK(sizes.is_balanced);
  const auto found = std::find_if(sizes.all.begin(), sizes.all.end(),
                                  [&](const auto& size) { return size.kind == kind && size.name == name; });
  return found == sizes.all.end() ? -1 : found->count;
}

long functions(const std::string& body) {
  return size_of("class C {\n" + body + "\n};", "class-functions", "C");
}

long members(const std::string& body) { return size_of("class C {\n" + body + "\n};", "class-members", "C"); }

long branches_of(const std::string& text, const std::string& name) {
  return size_of(text, "function-branches", name);
}

// Returns the decisions in a function with this body.
long decisions(const std::string& body) { return branches_of("int f() {\n" + body + "\n}", "f") - 1; }

}  // namespace

TEST_CASE("member functions are counted where the class declares them", "[walls]") {
  CHECK(functions("") == 0);
  CHECK(functions("void f(); void f(int); int g() const noexcept { return 1; }") == 3);
  CHECK(functions("C(int a, int b) : a_(a), b_{b} {} explicit(a) C(long); explicit C(int); ~C(); virtual "
                  "~C() = 0;") == 5);
  CHECK(functions("static C make(); virtual void f() = 0; void g() override; void h() final {}") == 4);
  CHECK(functions("C() = default; C(const C&) = delete; C& operator=(C&&) noexcept = default;") == 0);
  CHECK(functions("friend bool operator==(const C&, const C&) { return true; } friend class D;") == 0);
  CHECK(functions("using F = void(int); typedef void (*G)(int); static_assert(sizeof(int) == 4);") == 0);
  CHECK(functions("void operator()(int) const; bool operator&&(C) const; int operator[](int);") == 3);
  CHECK(functions("explicit operator bool() const; operator const char*(); operator std::vector<int>();") ==
        3);
  CHECK(functions(
            "void* operator new(std::size_t); bool operator<(C); bool operator>(C); C operator<<(C);") == 4);
  CHECK(functions("auto operator<=>(const C&) const = default; void operator,(C); C operator->(); ") == 2);
  CHECK(functions(
            "template <class T, std::size_t n = (1 > 0)> requires A<T> && (B<T> || !D<T>) void f(T&&);") ==
        1);
  CHECK(functions(
            "template <class T> std::map<int, std::vector<T>> f() requires requires(T t) { t.f(); } {}") ==
        1);
  CHECK(functions("auto f() -> std::vector<std::pair<int, int>> { return {}; } auto g() -> int;") == 2);
  CHECK(functions("template <class T, class = std::enable_if_t<a<T> && b<T>>> void f(T);") == 1);
  CHECK(functions("[[nodiscard]] int f() const&; int g() &&; int h() noexcept(noexcept(f()));") == 3);
  CHECK(functions("int f(int (*g)(int), std::function<void(int)> h = [](int) { return; }, int i = {});") ==
        1);
  CHECK(functions("int (*f(int))(double); decltype(auto) g(); struct D d(); enum E e();") == 4);
  CHECK(functions("C() try : a(1) { f(); } catch (...) { g(); } void f();") == 2);
  CHECK(functions("template <class... T> C(T&&... t) : T(t)..., a{1} {} void f();") == 2);
  CHECK(functions("MACRO(a, b); MACRO(c) void f(); MACRO({ if (x) y(); }); WYE_API void g() WYE_LOCAL;") ==
        2);
}

TEST_CASE("data members are counted by their declarators", "[walls]") {
  CHECK(members("") == 0);
  CHECK(members("int a; int b, *c, d[3]; mutable std::mutex e;") == 5);
  CHECK(members(
            "static int a; static constexpr int b = 1; inline static C* c = nullptr; thread_local int d;") ==
        0);
  CHECK(members("std::map<int, std::vector<int>> a, b; std::function<void(int, int)> c;") == 3);
  CHECK(members("int a = 1, b{2}; std::pair<int, int> c = std::pair<int, int>(1, 2), d{1, 2};") == 4);
  CHECK(members("int a : 3; unsigned b : 4 = 1, c : 1; unsigned : 2;") == 3);
  CHECK(members("void (*a)(int); int (C::*b)(int) const; int (&c)[3]; void (&&e)(int); void (*d[2])() = "
                "{nullptr};") == 5);
  CHECK(members("union { int a; struct { int b, c; }; }; int d;") == 4);
  CHECK(members("struct { int a; int b; } both; struct D { int e; } one, *two; struct E { int f; };") == 3);
  CHECK(members("enum class A : int { a, b }; enum { c, d }; enum F { g } h; enum F i;") == 2);
  CHECK(members("class D; struct WYE_LOCAL I; class [[deprecated]] J; friend struct E; using F = int; "
                "typedef int G; template <class T> class H;") == 0);
  CHECK(members("std::function<int(int)> f = [](int a) { int b = a; return b; }; int c = 1'000'000;") == 2);
  CHECK(
      members(
          "[[no_unique_address]] D a; alignas(64) std::atomic<int> b{0}; struct stat c {}; mutable ::D d;") ==
      4);
  CHECK(
      members("unsigned long long a; const char* const b = \"}\"; char c = '{'; const int d[2] = {1, 2};") ==
      4);
  CHECK(members("std::array<int, (3 > 2)> a; T::template U<int> b; typename T::V c; decltype(a) d;") == 4);
  CHECK(members("public: int a; private: int b; protected: void f();") == 2);
  CHECK(members("int a = b < c ? 1 : 2, d = e > f;") == 2);
  CHECK(members("bool a = b < c && d, e = f > g; std::conditional_t<a && b, int, long> h;") == 3);
  CHECK(members("#define X(name) int name;\n#undef X\nint a; // int b;\n/* int c; */ int d;") == 2);
}

TEST_CASE("classes are found in every scope", "[walls]") {
  const auto members_of = [](const std::string& text, const std::string& name) {
    return size_of(text, "class-members", name);
  };
  CHECK(members_of("namespace a::inline b { namespace { struct C { int a; }; } }", "C") == 1);
  CHECK(members_of("inline namespace b { struct C { int a; }; }", "C") == 1);
  CHECK(members_of("extern \"C\" { struct C { int a; }; }", "C") == 1);
  CHECK(members_of("class WYE_API C final : public D<(1 > 0)>, E<F<int>> { int a; };", "C") == 1);
  CHECK(members_of("struct [[nodiscard]] alignas(8) WYE_PACKED(1) C : D { int a; };", "C") == 1);
  CHECK(members_of("template <> struct C<std::vector<int>> { int a; };", "C") == 1);
  CHECK(members_of("template <class T> struct C { struct D { int a, b; }; int c; };", "C::D") == 2);
  CHECK(members_of("struct C { class D; }; class C::D { int a; };", "C::D") == 1);
  CHECK(members_of("struct C { struct { int a; } b; };", "C::(unnamed)") == 1);
  CHECK(members_of("void f() { struct C { int a; }; }", "f::C") == 1);
  CHECK(members_of("struct C; struct C f(struct C c); enum class C { a };", "C") == -1);
  CHECK(members_of("namespace a { struct C { int a; }; } namespace b { struct C { int a, b; }; }", "C") == 2);
  CHECK(members_of("namespace a { struct C { int a; }; } namespace b { struct C { int a, b; }; }", "C (2)") ==
        1);
}

TEST_CASE("each decision of a function is counted", "[walls]") {
  CHECK(decisions("") == 0);
  CHECK(decisions("if (a) b(); else if (c) d(); else e();") == 2);
  CHECK(decisions("for (;;) {} for (auto& a : b) {} while (c) {} do {} while (d);") == 4);
  CHECK(decisions("switch (a) { case 1: case 2: break; default: break; }") == 2);
  CHECK(decisions("try { a(); } catch (const B&) { } catch (...) { }") == 2);
  CHECK(decisions("return a && b || c and d or e;") == 4);
  CHECK(decisions("return a ? b : c ? d : e;") == 2);
  CHECK(decisions("if constexpr (a) { b(); }") == 1);
  CHECK(decisions("const auto f = [&](int a) { return a > 0 && b[a] ? 1 : 2; };") == 2);
  CHECK(decisions("struct D { bool g() { return a && b; } }; return c || d;") == 1);
  CHECK(branches_of("void f() { struct D { bool g() { return a && b; } }; }", "f::D::g") == 2);
}

TEST_CASE("words of decisions in comments, strings, directives and types do not count", "[walls]") {
  CHECK(decisions("// if (a && b)\n/* if (a) ? */ g(\"if (a && b) {\", '?', u8\"||\");") == 0);
  CHECK(decisions("g(R\"x(if (a) { )\" && || )x\"); g(LR\"(\"&&)\");") == 0);
  CHECK(decisions("g(1'000'000, 0x1'F, 1e-5, 'a'); if (a) b('\\'', \"\\\"\");") == 1);
  CHECK(decisions("#define X(a) if (a && \\\n b) c()\n#if a && b\n#endif\nX(1);") == 0);
  CHECK(decisions("static_assert(a && b); using T = decltype(a && b); auto c = sizeof(a || b);") == 0);
  CHECK(decisions("g(a.if_any, for_each, do_it, whiles);") == 0);
}

TEST_CASE("references to rvalues are no decisions", "[walls]") {
  CHECK(decisions("auto&& a = b; const auto&& c = d; auto&& [e, g] = h; for (auto&& i : j) {}") == 1);
  CHECK(decisions("for (Job&& a : b) {} for (std::pair<int, A>&& c : d) {} T&& e = g();") == 2);
  CHECK(decisions("g(static_cast<T&&>(a), std::forward<T&&>(b), A<T&&, B>(), C<T&&...>());") == 0);
  CHECK(decisions("g([](Job&& a, B&&) {}, [&]<class T>(T&& c) mutable -> T&& { return c; });") == 0);
  CHECK(decisions("return [](std::vector<int>&& a) { return a.empty() && b; };") == 1);
  CHECK(decisions("std::function<void(Job&& job)> a; c.operator&&(d); try {} catch (E&& e) {}") == 1);
  CHECK(decisions("a[i](b && c); (a)(b && c); g(x)[0](b && c);") == 3);
  CHECK(decisions("return a && [&] { return b; }() && !c && *d && (e) && \"g\" && 1;") == 6);
  CHECK(decisions("void (*d)(T&&); inline auto e = [](int) requires(a && b) { return 1; };") == 0);
  CHECK(decisions("return a < b && c > d;") == 1);
  CHECK(decisions("return x ? a && b : c;") == 2);
  CHECK(decisions("if constexpr (requires(T&& t) { t.g(); }) {}") == 1);
  CHECK(branches_of("void f(T&& a, U&&... b) noexcept(c && d) { g(); }", "f") == 1);
  CHECK(branches_of("bool operator&&(A a, A&& b) { return a; }", "operator&&") == 1);
  CHECK(branches_of("template <class T> requires A<T> && B<T> void f() { g(); }", "f") == 1);
  CHECK(branches_of("template <class T> void f() requires A<T> && (B<T> || C<T>) { g(); }", "f") == 1);
}

TEST_CASE("functions of every form have their branches and names", "[walls]") {
  CHECK(branches_of("C::C(int a) : a_(a ? 1 : 2), b_{a && c}, D<int>(a) { if (a) b(); }", "C::C") == 4);
  CHECK(branches_of("C::C() try : a_(1) { } catch (...) { if (a) b(); }", "C::C") == 3);
  CHECK(branches_of("void f() try { if (a) b(); } catch (A&) { } catch (...) { }", "f") == 4);
  CHECK(branches_of("C::~C() { if (a) b(); }", "C::~C") == 2);
  CHECK(branches_of("C::operator bool() const { return a && b; }", "C::operator bool") == 2);
  CHECK(branches_of("bool C::operator()(int a) const { return a && b; }", "C::operator()") == 2);
  CHECK(branches_of("template <class T> std::vector<T> C<T>::D::f() const { if (a) b(); }", "C::D::f") == 2);
  CHECK(branches_of("auto f(int a) -> std::map<int, int> { return a ? b : c; }", "f") == 2);
  CHECK(branches_of("class C { friend bool f(C) { return a && b; } };", "C::f") == 2);
  CHECK(branches_of("class C { int f() { if (a) b(); } int a = 1; };", "C::f") == 2);
  CHECK(branches_of("class C { int a = b ? 1 : 2; };", "C::a") == 2);
  CHECK(branches_of("constexpr auto f = [](int a) { if (a) b(); };", "f") == 2);
  CHECK(branches_of("const std::map<int, int> table{{1, 2}, {3, 4}};", "table") == -1);
  CHECK(branches_of("template <class T> concept f = a<T> && b<T>;", "f") == -1);
  CHECK(branches_of("TEST_CASE(\"a { && ?\", \"[b]\") { if (a) b(); }", "TEST_CASE(\"a { && ?\")") == 2);
  CHECK(branches_of("void f() { if (a) b(); } void f(int) { while (a || b) c(); }", "f") == 3);
  CHECK(branches_of("void f() { if (a) b(); } void f(int) { while (a || b) c(); }", "f (2)") == 2);
  CHECK(branches_of("struct D f() { if (a) b(); }", "f") == 2);
  CHECK(branches_of("void f(); void g() { MACRO({ if (a) b(); }); }", "g") == 2);
}

TEST_CASE("branches of a directive are read if their brackets match", "[walls]") {
  CHECK(decisions("#if A\nif (a) b();\n#else\nif (c) d();\n#endif") == 2);
  CHECK(decisions("#ifdef A\nif (a) {\n#else\nif (b && c) {\n#endif\n}") == 1);
  CHECK(decisions("#if 0\nif (a) {\n#elif B\nif (b && c) {}\n#endif") == 2);
  CHECK(decisions("#if A\n#if B\nif (a) b();\n#endif\n#endif\nif (c) d();") == 2);
}

TEST_CASE("a file whose brackets do not match is reported", "[walls]") {
  CHECK_FALSE(walls::sizes_of("void f() { if (a) { }").is_balanced);
  CHECK_FALSE(walls::sizes_of("void f() { g(a]; }").is_balanced);
  CHECK_FALSE(walls::sizes_of("} void f() {").is_balanced);
  CHECK(walls::sizes_of("").is_balanced);
}
