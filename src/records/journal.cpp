#include "journal.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "text.hpp"

namespace wye::inline v0::records {
namespace {

struct EntryHead {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Sorts the ranges and joins those that touch.
void join(std::vector<RecordRange>& ranges) {
  std::ranges::sort(ranges, {}, &RecordRange::first);
  std::vector<RecordRange> joined;
  for (const RecordRange& range : ranges) {
    if (joined.empty() || range.first > joined.back().end())
      joined.push_back(range);
    else
      joined.back().count = std::max(joined.back().end(), range.end()) - joined.back().first;
  }
  ranges = std::move(joined);
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const RecordFunction& function, std::uint64_t batch,
                              const Source& source, Sink& sink, std::vector<RecordRange>& done) {
  const auto describe = [](const RecordType& type) { return text(type.name, " (", type.size, " bytes)"); };
  const std::string identity =
      text("function '", function.name(), "', batches of ", batch, ", ", source.count(), " records of type ",
           describe(function.input()), " ", source.identity(), ", results of type ",
           describe(function.output()), " ", sink.identity());
  const bool has_results = !sink.is_file();
  const auto take = [&](std::span<const std::byte> entry) -> Result<void> {
    EntryHead head;
    const auto wrong = [&] {
      return Error(Errc::corrupt, text("File '", path, "' has an entry that is none of this set."));
    };
    if (entry.size() < sizeof(head)) return wrong();
    std::memcpy(&head, entry.data(), sizeof(head));
    const auto rest = entry.subspan(sizeof(head));
    const RecordRange range{head.first, head.count};
    if (range.count == 0 || range.first >= source.count() || range.count > source.count() - range.first)
      return wrong();
    if (!has_results) {
      const auto same = sink.has(range, {reinterpret_cast<const char*>(rest.data()), rest.size()});
      if (!same) return same.error();
      if (*same) done.push_back(range);
      return {};
    }
    if (rest.size() != range.count * function.output().size) return wrong();
    done.push_back(range);
    return sink.write(range, rest);
  };
  auto file = process::EntryFile::open(path, identity, take);
  if (!file) return std::move(file).error().with_context("while opening the journal of a record set");
  join(done);
  return Journal(*std::move(file), has_results);
}

Result<void> Journal::note(const RecordRange& range, std::span<const std::byte> results) {
  const EntryHead head{range.first, range.count};
  const auto bytes = std::as_bytes(std::span(&head, 1));
  if (has_results_) return file_.append(bytes, results);
  const std::string sum = process::checksum_of(results);
  return file_.append(bytes, std::as_bytes(std::span(sum)));
}

}  // namespace wye::records
