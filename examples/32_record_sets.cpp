// Many records on many devices, in worker processes: a record that crashes its worker costs that
// record alone, and is named.
//
//     32_record_sets --crash 4711
#include <wye/records/distribute.hpp>
#include <wye/records/progress_bars.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

constexpr std::array<std::string_view, 8> words{"must",     "shall",  "may",  "not",
                                                "warranty", "liable", "free", "copy"};
constexpr std::array<float, 8> weights{3, 3, 1, 1, 2, 2, -1, 0.5f};

struct Page {  // of a licence
  std::array<char, 1000> text;
  std::uint32_t size;
  std::uint32_t crashes;  // as a faulty model would
};
struct Score {
  float strictness;
};

/// The state of a worker: a model that scores pages by their words.
struct Model {
  wye::Runtime runtime;

  wye::Result<void> score(std::span<const Page> pages, std::span<Score> scores) {
    std::vector<float> counts(pages.size() * words.size()), results(pages.size());
    for (std::size_t p = 0; p < pages.size(); ++p) {
      if (pages[p].crashes != 0) std::raise(SIGSEGV);
      const std::string_view text(pages[p].text.data(), pages[p].size);
      for (std::size_t w = 0; w < words.size(); ++w)
        for (std::size_t at = text.find(words[w]); at != text.npos; at = text.find(words[w], at + 1))
          counts[p * words.size() + w] += 1;
    }
    const auto done =
        runtime.submit(wye::workloads::matmul(counts, weights, results, {pages.size(), 1, words.size()}))
            .wait();
    if (!done) return done.error();
    for (std::size_t p = 0; p < pages.size(); ++p) scores[p].strictness = results[p];
    return {};
  }
};

/// The licences and copyright files that every Debian machine has, in pages.
std::vector<Page> read_pages() {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/common-licenses", error))
    files.push_back(entry.path());
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/doc", error))
    if (std::filesystem::exists(entry.path() / "copyright", error))
      files.push_back(entry.path() / "copyright");
  std::sort(files.begin(), files.end());
  std::vector<Page> pages;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t at = 0; at < text.size(); at += 1000) {
      Page page{};
      page.size = static_cast<std::uint32_t>(text.copy(page.text.data(), page.text.size(), at));
      pages.push_back(page);
    }
  }
  return pages;
}

}  // namespace

int main(int argc, char** argv) {
  const wye::RecordFunction score{
      "score", [](wye::RecordWorker& worker) { return Model{worker.runtime()}; },  // once in each worker
      [](Model& model, std::span<const Page> in, std::span<Score> out) { return model.score(in, out); }};
  if (auto end = wye::worker_main(argc, argv, {score})) return *end;  // a worker process ends here

  std::vector<Page> pages = read_pages();
  if (pages.empty()) return std::puts("This machine has no licence texts in /usr/share."), 0;
  if (argc == 3 && std::strcmp(argv[1], "--crash") == 0)
    pages[std::strtoull(argv[2], nullptr, 10) % pages.size()].crashes = 1;

  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());
  std::vector<Score> scores(pages.size());
  const auto report = wye::distribute(*runtime, score, pages, scores,
                                      {.processes = true, .progress = wye::progress_bars(stderr)});
  if (!report) return fail(report.error());
  std::puts(report->text().c_str());
  for (const wye::RecordFailure& f : report->failed)
    std::printf("%llu to %llu: %s\n", static_cast<unsigned long long>(f.first),
                static_cast<unsigned long long>(f.last), f.error.describe().c_str());

  const auto strictest = std::max_element(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    return a.strictness < b.strictness;
  });
  const Page& page = pages[static_cast<std::size_t>(strictest - scores.begin())];
  std::printf("The strictest page (%g):\n%.*s\n", strictest->strictness, static_cast<int>(page.size),
              page.text.data());
  return report->done + report->failed_records() == pages.size() ? 0 : 1;
}
