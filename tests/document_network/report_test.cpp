#include "report.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace document_network;

TEST_CASE("the report as JSON has the shape that scripts rely on", "[document_network]") {
  Report report;
  report.documents = 2;
  report.synthetic = 1;
  report.skipped = {{"binary", 1}, {"empty", 3}};
  report.host_steps = {{"read", 0.25}};
  report.steps = {{"normalize", "cpu", "A \"CPU\"", "It is the only device.", 0.5, "memory"}};
  report.top = {{"/docs/a", "a", 0.75}};
  report.files = {"out/similarity.png"};
  report.compare = {{"vulkan", "normalize", 1e-6}};
  CHECK(to_json(report) == R"({
  "documents": 2,
  "synthetic": 1,
  "skipped": {
    "binary": 1,
    "empty": 3
  },
  "host_steps": [
    {
      "name": "read",
      "seconds": 0.25
    }
  ],
  "steps": [
    {
      "name": "normalize",
      "backend": "cpu",
      "device": "A \"CPU\"",
      "reason": "It is the only device.",
      "seconds": 0.5,
      "cache": "memory"
    }
  ],
  "top": [
    {
      "path": "/docs/a",
      "rank": 0.75
    }
  ],
  "files": [
    "out/similarity.png"
  ],
  "compare": [
    {
      "backend": "vulkan",
      "step": "normalize",
      "max_relative_error": 1e-06
    }
  ]
}
)");
  CHECK(to_json(Report{}) == R"({
  "documents": 0,
  "synthetic": 0,
  "skipped": {},
  "host_steps": [],
  "steps": [],
  "top": [],
  "files": [],
  "compare": []
}
)");
}

TEST_CASE("a path of any bytes is valid JSON, and any UTF-8 is kept", "[document_network]") {
  const auto path = [](const std::string& bytes) {
    Report report;
    report.top = {{bytes, "label", 1}};
    return nlohmann::json::parse(to_json(report))["top"][0]["path"].get<std::string>();
  };
  for (const char* kept : {"a\"b\\c/d", "line\nbreak\ttab\x01\x7f", "ß 漢 🎉", ""}) CHECK(path(kept) == kept);
  CHECK(path("\xff\xfe"
             "a") ==
        "\xEF\xBF\xBD\xEF\xBF\xBD"
        "a");
  CHECK(path("caf\xe2\x82") == "caf\xEF\xBF\xBD");  // the third byte is missing
}

TEST_CASE("every number of the report is a finite number in JSON", "[document_network]") {
  using Limits = std::numeric_limits<double>;
  const auto error = [](double value) {
    Report report;
    report.compare = {{"vulkan", "normalize", value}};
    return nlohmann::json::parse(to_json(report))["compare"][0]["max_relative_error"].get<double>();
  };
  CHECK(error(0.1) == 0.1);
  CHECK(error(Limits::infinity()) == Limits::max());
  CHECK(error(-Limits::infinity()) == Limits::lowest());
  CHECK(error(Limits::quiet_NaN()) == Limits::max());
}

TEST_CASE("the report as text names every skipped file's reason and every alike pair", "[document_network]") {
  CHECK(describe_input(1, 0, {}) == "1 document.");
  CHECK(describe_input(400, 2, {{"binary", 1}, {"empty", 3}}) ==
        "400 documents (2 not UTF-8, read as Latin-1); 4 files left out: 1 binary, 3 empty.");
  CHECK(describe_input(400, 0, {}, 380) == "400 documents (380 synthetic).");
  Report report;
  report.alike = {{"GPL-2", "GPL-3", 0.934}, {"odd\nname", "x", 0.5}};
  const std::string text = to_text(report);
  CHECK(text.find("0.93  GPL-2 ~ GPL-3\n") != std::string::npos);
  CHECK(text.find("odd\n") == std::string::npos);
}

TEST_CASE("the report ends with the devices, the pictures and a command to try", "[document_network]") {
  Report report;
  report.steps = {{"normalize", "cpu", "A CPU", "", 0.5, "none"},
                  {"pagerank", "cpu", "A CPU", "", 0.5, "none"}};
  report.devices = {{"cpu:0", "A CPU", {"normalize", "pagerank"}, ""},
                    {"vulkan:0", "A GPU", {}, "It is slow."},
                    {"cuda", "", {}, "There is no driver."}};
  report.files = {"out/similarity.png", "out/network.png"};
  const auto ends_with = [&](const std::string& end) {
    const std::string text = to_text(report);
    CAPTURE(text);
    CHECK(text.ends_with(end));
  };
  ends_with(
      "\nDevices considered:\n"
      "  cpu:0    A CPU: ran every step.\n"
      "  vulkan:0 A GPU: It is slow.\n"
      "  cuda     There is no driver.\n"
      "\nPictures:\n"
      "  out/similarity.png\n"
      "  out/network.png\n"
      "\nNext: 'examples/run.sh --compare' runs every step on each backend and compares the results.\n");

  report.compared = true;
  ends_with("\nNext: 'examples/run.sh --documents DIR' does the same for the texts of a folder.\n");
}

TEST_CASE("a device that ran some steps has the reason for the others", "[document_network]") {
  Report report;
  report.steps = {{"normalize", "cpu", "A CPU", "", 0.5, "none"},
                  {"pagerank", "cuda", "A GPU", "", 0.5, "none"}};
  report.devices = {{"cpu:0", "A CPU", {"normalize"}, "'cuda' comes first."}};
  CHECK(to_text(report).find("  cpu:0    A CPU: ran 1 of 2 steps. The others: 'cuda' comes first.\n") !=
        std::string::npos);
}
