// The program `wye` on this machine.
#include <wye/wye.hpp>

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

struct Ran {
  int status = 0;
  std::string out, err;
};

Ran run(const std::string& arguments, const std::string& variables = "") {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  // A sanitizer finds leaks of drivers that are unloaded, and no names for them.
  const std::string command = "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" " + variables +
                              " WYE_CACHE_DIR=" + (folder / "cache") + " '" WYE_PROGRAM "' " + arguments +
                              " >" + out + " 2>" + err;
  Ran ran;
  ran.status = WEXITSTATUS(std::system(command.c_str()));
  const auto content = [](const std::string& path) {
    std::ifstream file(path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  ran.out = content(out);
  ran.err = content(err);
  return ran;
}

}  // namespace

TEST_CASE("wye info lists each adapter, as text and as JSON", "[wye]") {
  const auto runtime = wye::Runtime::open().value();
  const Ran text = run("info"), object = run("info --json");
  CHECK((text.status == 0 && text.err.empty()));
  CHECK((object.status == 0 && object.err.empty()));
  const auto json = nlohmann::json::parse(object.out);
  CHECK(json["version"] == to_string(wye::library_version()));
  REQUIRE(json["devices"].size() == runtime.adapters().size());
  for (std::size_t a = 0; a < runtime.adapters().size(); ++a) {
    const wye::AdapterInfo& adapter = runtime.adapters()[a];
    CHECK(json["devices"][a]["id"] == adapter.id);
    CHECK(json["devices"][a]["usable"] == adapter.usable);
    CHECK(text.out.find(adapter.usable ? adapter.name : adapter.reason) != std::string::npos);
  }
  CHECK(json["options"].contains("WYE_CACHE_DIR"));
}

TEST_CASE("wye doctor ends with 0 without a finding, and with 1 and the remedy otherwise", "[wye]") {
  const Ran wrong = run("doctor", "WYE_LANES=many"), object = run("doctor --json", "WYE_LANES=many");
  CHECK(wrong.status == 1);
  CHECK(
      wrong.out.find("options: Environment variable WYE_LANES ('many') is not a whole number.\n  Correct the "
                     "variable, or unset it.\n") != std::string::npos);
  const auto findings = nlohmann::json::parse(object.out)["findings"];
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0]["check"] == "options");
  const Ran here = run("doctor"), here_as_json = run("doctor --json");
  CHECK(here.status == (nlohmann::json::parse(here_as_json.out)["findings"].empty() ? 0 : 1));
}

TEST_CASE("wye run has the devices, their times and the choice, as text and as JSON", "[wye]") {
  const Ran text = run("run matmul --size 33 --repeat 2"),
            object = run("run matmul --size 33 --repeat 2 --json");
  CHECK((text.status == 0 && text.err.empty() && object.status == 0));
  CHECK(text.out.starts_with("matmul, 33 rows and columns\n  "));
  CHECK(text.out.find("\nchosen: ") != std::string::npos);
  const auto json = nlohmann::json::parse(object.out);
  CHECK((json["workload"] == "matmul" && json["size"] == 33 && json["chosen"].contains("reason")));
  for (const auto& device : json["devices"]) CHECK((device["right"] == true && device["last"]["run_ms"] > 0));
  const Ran one = run("run dot --device cpu:0 --json");
  CHECK(nlohmann::json::parse(one.out)["devices"].size() == 1);
  for (const char* arguments :
       {"run paint", "run dot --size 0", "run dot --device x", "run dot --size many"}) {
    const Ran wrong = run(arguments);
    CHECK((wrong.status == 2 && !wrong.err.empty()));
  }
}

TEST_CASE("wye refuses wrong arguments with 2, and has help and a version", "[wye]") {
  for (const char* arguments : {"", "paint", "info --loud"}) {
    const Ran ran = run(arguments);
    CHECK((ran.status == 2 && ran.out.empty() && !ran.err.empty()));
  }
  CHECK(run("--version").out == "wye " + to_string(wye::library_version()) + "\n");
  for (const char* arguments : {"--help", "doctor --help"}) CHECK(run(arguments).status == 0);
  CHECK(run("--help").out.find("doctor") != std::string::npos);
}
