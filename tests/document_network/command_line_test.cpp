#include "command_line.hpp"

#include "support/temporary_folder.hpp"

using namespace document_network;

namespace {

std::string mistake(const std::vector<std::string>& arguments) {
  const auto read = read_command_line(arguments);
  const auto* wrong = std::get_if<Mistake>(&read);
  return wrong ? wrong->sentence : "";
}

Options options(const std::vector<std::string>& arguments) {
  auto read = read_command_line(arguments);
  CAPTURE(mistake(arguments));
  REQUIRE(std::holds_alternative<Options>(read));
  return std::get<Options>(read);
}

}  // namespace

TEST_CASE("without arguments everything has its default", "[document_network]") {
  const Options defaults = options({});
  CHECK(defaults.backend == "auto");
  CHECK_FALSE(defaults.compare);
  CHECK(defaults.out == "document_network_report");
  CHECK_FALSE(defaults.json);
  CHECK_FALSE(defaults.documents);
  CHECK_FALSE(defaults.documents_limit);
  CHECK_FALSE(defaults.neighbours);
  CHECK_FALSE(defaults.by_meaning);
  CHECK_FALSE(defaults.ask);
}

TEST_CASE("flags take their value after a blank or an equals sign", "[document_network]") {
  const TemporaryFolder folder;
  const Options said = options({"--backend", "vulkan", "--compare", "--out=" + (folder / "out"), "--json",
                                folder / "a=b.json", "--documents=" + folder.path().string()});
  CHECK(said.backend == "vulkan");
  CHECK(said.compare);
  CHECK(said.out == folder / "out");
  CHECK(said.json == folder / "a=b.json");
  CHECK(said.documents == folder.path().string());
  CHECK(options({"--backend", "cpu", "--backend=vulkan:0"}).backend == "vulkan:0");
  CHECK(options({"--documents-limit", "20000"}).documents_limit == 20'000u);
  CHECK(options({"--documents-limit=1"}).documents_limit == 1u);
  CHECK(options({"--documents-limit=100000"}).documents_limit == 100'000u);
  CHECK(options({"--neighbours", folder / "all.json"}).neighbours == folder / "all.json");
  CHECK_FALSE(options({"--vectors", "words"}).by_meaning);
  if (has_models()) {
    const Options model = options({"--vectors=model", "--model", folder.path().string(), "--ask", "why?"});
    CHECK(model.by_meaning);
    CHECK(model.model == folder.path().string());
    CHECK(model.ask == "why?");
  }
}

TEST_CASE("help is given whatever else is said", "[document_network]") {
  CHECK(std::holds_alternative<Help>(read_command_line({"--compare", "--help", "--nonsense"})));
  CHECK(std::holds_alternative<Help>(read_command_line({"-h"})));
  const std::string help = help_text();
  CAPTURE(help);
  for (const char* part : {"--documents DIR", "--documents-limit N", "--vectors KIND", "--ask TEXT",
                           "--neighbours FILE", "--backend NAME", "--compare", "--out DIR", "--json FILE",
                           "--help", "(default: auto)", "(default: document_network_report)", "exit status"})
    CHECK(help.find(part) != std::string::npos);
}

TEST_CASE("each wrong argument is named", "[document_network]") {
  const TemporaryFolder folder;
  const std::string file = folder.put("file", "text");
  CHECK(mistake({"--nonsense"}) == "Unknown argument '--nonsense'.");
  CHECK(mistake({"somewhere"}) == "Unknown argument 'somewhere'.");
  CHECK(mistake({"--backend"}) == "--backend needs a value.");
  CHECK(mistake({"--out", "--compare"}) == "--out needs a value.");
  CHECK(mistake({"--json="}) == "--json needs a value.");
  CHECK(mistake({"--json=", "--compare"}) == "--json needs a value.");
  CHECK(mistake({"--json", "", "--json=report.json"}) == "--json needs a value.");
  CHECK(mistake({"--compare=yes"}) == "--compare takes no value.");
  CHECK(mistake({"--documents", folder / "gone"}) ==
        "Folder '" + (folder / "gone") + "' (--documents) does not exist.");
  CHECK(mistake({"--documents", file}) == "'" + file + "' (--documents) is not a folder.");
  CHECK(mistake({"--out", file}) == "'" + file + "' (--out) is not a folder.");
  CHECK(mistake({"--json", folder.path().string()}) ==
        "'" + folder.path().string() + "' (--json) is a folder, not a file.");
  CHECK(mistake({"--neighbours", folder.path().string()}) ==
        "'" + folder.path().string() + "' (--neighbours) is a folder, not a file.");
  CHECK(mistake({"--vectors", "letters"}) == "--vectors ('letters') is neither 'words' nor 'model'.");
  CHECK(mistake({"--ask", "why?"}) ==
        "--ask needs --vectors model: a question and its answer may share no word.");
  CHECK(mistake({"--ask=", "--vectors=model"}) == "--ask needs a value.");
  if (has_models()) {
    CHECK(mistake({"--vectors=model"}).find("--vectors model needs --model DIR") == 0);
    CHECK(mistake({"--vectors=model", "--model", folder / "gone"}) ==
          "Folder '" + (folder / "gone") +
              "' (--model) does not exist; 'cmake/wheels.sh models' fetches all-MiniLM-L6-v2.");
  } else {
    CHECK(mistake({"--vectors=model", "--model", folder.path().string()}) ==
          "This build has no models; 'examples/run.sh --vectors model' builds them.");
  }
  CHECK(mistake({"--documents-limit"}) == "--documents-limit needs a value.");
  for (const char* wrong :
       {"0", "-5", "100001", "99999999999999999999", "many", "1e3", "400x", " 400", "4.5"})
    CHECK(mistake({"--documents-limit=" + std::string(wrong)}) ==
          "--documents-limit ('" + std::string(wrong) + "') is not a number from 1 to 100000.");
}
