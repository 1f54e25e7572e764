#include "json.hpp"

#include <cmath>
#include <limits>

#include "report.hpp"
#include "support/catch.hpp"

using namespace document_network;

TEST_CASE("text in JSON escapes what it must and is always UTF-8", "[document_network]") {
  CHECK(json::text("plain") == R"("plain")");
  CHECK(json::text("a\"b\\c/d") == R"("a\"b\\c/d")");
  CHECK(json::text("line\nbreak\ttab\x01") == R"("line\u000abreak\u0009tab\u0001")");
  CHECK(json::text("ß 漢 🎉") == "\"ß 漢 🎉\"");
  CHECK(json::text("\xff\xfe"
                   "a\xe2\x82") ==
        "\"\xEF\xBF\xBD\xEF\xBF\xBD"
        "a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST_CASE("numbers in JSON are numbers", "[document_network]") {
  CHECK(json::number(std::size_t{20000}) == "20000");
  CHECK(json::number(0.0) == "0");
  CHECK(json::number(1.5e-7) == "1.5e-07");
  CHECK(json::number(std::numeric_limits<double>::infinity()) == "1.79769313e+308");
  CHECK(json::number(-std::numeric_limits<double>::infinity()) == "-1.79769313e+308");
  CHECK(json::number(std::nan("")).find("nan") == std::string::npos);
}

TEST_CASE("the report as JSON has the shape that scripts rely on", "[document_network]") {
  Report report;
  report.documents = 2;
  report.skipped = {{"binary", 1}, {"empty", 3}};
  report.host_steps = {{"read", 0.25}};
  report.steps = {{"normalize", "cpu", "A \"CPU\"", "It is the only device.", 0.5, "memory"}};
  report.top = {{"/docs/a", "a", 0.75}};
  report.files = {"out/similarity.png"};
  report.compare = {{"vulkan", "normalize", 1e-6}};
  CHECK(
      to_json(report) ==
      R"({"documents": 2, "skipped": {"binary": 1, "empty": 3}, )"
      R"("host_steps": [{"name": "read", "seconds": 0.25}], )"
      R"("steps": [{"name": "normalize", "backend": "cpu", "device": "A \"CPU\"", "reason": "It is the only device.", "seconds": 0.5, "cache": "memory"}], )"
      R"("top": [{"path": "/docs/a", "rank": 0.75}], )"
      R"("files": ["out/similarity.png"], )"
      R"("compare": [{"backend": "vulkan", "step": "normalize", "max_relative_error": 1e-06}]})"
      "\n");
  CHECK(
      to_json(Report{}) ==
      R"({"documents": 0, "skipped": {}, "host_steps": [], "steps": [], "top": [], "files": [], "compare": []})"
      "\n");
}

TEST_CASE("the report as text names every skipped file's reason and every alike pair", "[document_network]") {
  CHECK(describe_input(1, 0, {}) == "1 document.");
  CHECK(describe_input(400, 2, {{"binary", 1}, {"empty", 3}}) ==
        "400 documents (2 not UTF-8, read as Latin-1); 4 files left out: 1 binary, 3 empty.");
  Report report;
  report.alike = {{"GPL-2", "GPL-3", 0.934}, {"odd\nname", "x", 0.5}};
  const std::string text = to_text(report);
  CHECK(text.find("0.93  GPL-2 ~ GPL-3\n") != std::string::npos);
  CHECK(text.find("odd\n") == std::string::npos);
}
