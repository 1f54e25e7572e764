// Errors that pass from one process to another.
#include "process/error_bytes.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using process::error_from;
using process::to_bytes;

TEST_CASE("an error is the same after it has passed as bytes", "[process]") {
  const Error plain(Errc::timed_out, "Job 'x' exceeds its limit (5 s).");
  const Error native(Errc::out_of_memory, "No memory.",
                     NativeError{"cuMemAlloc", -2, "CUDA_ERROR_OUT_OF_MEMORY"});
  const Error compiled(
      Errc::compile_failed, "Kernel 'k' does not compile.",
      std::vector<Diagnostic>{{.file = "k.comp", .line = 4, .column = 2, .text = "'foo'"},
                              {.severity = Diagnostic::Severity::warning, .text = "unused"}});
  for (const Error& error : {plain, native, compiled}) {
    const Error with = error.with_context("while loading").with_context("while starting");
    const auto again = error_from(to_bytes(with));
    REQUIRE(again);
    CHECK(again->describe() == with.describe());
    CHECK(again->code() == with.code());
    CHECK(std::vector(again->diagnostics().begin(), again->diagnostics().end()) ==
          std::vector(with.diagnostics().begin(), with.diagnostics().end()));
  }
}

TEST_CASE("a long error is cut, between characters", "[process]") {
  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "\xc3\xa4";
  Error error(Errc::internal, "x" + umlauts,
              std::vector<Diagnostic>(100, {.file = umlauts, .text = umlauts}));
  for (int i = 0; i < 100; ++i) error = error.with_context(umlauts);
  const auto bytes = to_bytes(error);
  CHECK(bytes.size() <= process::most_error_bytes);
  const auto again = error_from(bytes);
  REQUIRE(again);
  CHECK(again->sentence().size() == 4095);
  CHECK(again->sentence().ends_with("\xa4"));
  CHECK((again->diagnostics().size() == 8 && again->context().size() == 8));
}

TEST_CASE("damaged bytes are those of no error", "[process]") {
  const auto bytes = to_bytes(Error(Errc::io, "Text.", NativeError{"read", 5, "EIO"}).with_context("while"));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(error_from(std::span(bytes).first(size)));
  auto longer = bytes;
  longer.push_back({});
  CHECK_FALSE(error_from(longer));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto damaged = bytes;
    damaged[at] = std::byte{0xff};
    (void)error_from(damaged);  // an error or none, and no crash
  }
  CHECK_FALSE(error_from(std::vector<std::byte>(64)));
}
