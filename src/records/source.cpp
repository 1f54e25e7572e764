#include "source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "called.hpp"
#include "process/entry_file.hpp"
#include "text.hpp"

namespace wye::inline v0::records {
namespace {

constexpr std::uint64_t indexed = 128;        // of so many lines, the first one's place is kept
constexpr std::uint64_t piece_bytes = 65536;  // of a read
constexpr std::byte newline{'\n'};

}  // namespace

Result<Source> Source::open(RecordInput input) {
  if (!input.path_) {
    const std::uint64_t count = input.count_;
    return Source(std::move(input), count);
  }
  auto file = WholeFile::open(*input.path_);
  if (!file) return std::move(file).error();
  if (input.longest_line_ != 0) {
    Source source(std::move(input), 0);
    source.file_.emplace(*std::move(file));
    if (auto indexed = source.index_lines(); !indexed) return std::move(indexed).error();
    return source;
  }
  const std::uint64_t size = input.type_.size;
  if (file->length() % size != 0)
    return Error(Errc::invalid_argument,
                 text("File '", *input.path_, "' ends with a cut record: its length (", file->length(),
                      " bytes) is no multiple of ", size, " bytes."));
  Source source(std::move(input), file->length() / size);
  source.file_.emplace(*std::move(file));
  return source;
}

/// Counts the lines, and keeps where some of them begin.
Result<void> Source::index_lines() {
  std::vector<std::byte> piece(piece_bytes);
  std::uint64_t begin = 0;  // of the line
  const auto end_line = [&](std::uint64_t end) -> Result<void> {
    if (end - begin > input_.longest_line_)
      return Error(Errc::invalid_argument,
                   text("Line ", count_ + 1, " of file '", *input_.path_, "' has ", end - begin,
                        " bytes, more than the limit of its records (", input_.longest_line_, ")."));
    if (count_++ % indexed == 0) lines_.push_back(begin);
    begin = end + 1;
    return {};
  };
  const std::uint64_t length = file_->length();
  for (std::uint64_t at = 0; at < length; at += piece.size()) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min(length - at, piece_bytes)));
    if (auto read = file_->read(at, part); !read) return read;
    for (std::size_t i = 0; i < part.size(); ++i)
      if (part[i] == newline)
        if (auto ended = end_line(at + i); !ended) return ended;
  }
  return begin < length ? end_line(length) : Result<void>();
}

Result<void> Source::read_lines(const RecordRange& range, std::span<std::byte> to) const {
  std::ranges::fill(to, std::byte{});
  std::uint64_t at = lines_[static_cast<std::size_t>(range.first / indexed)];
  std::uint64_t line = range.first / indexed * indexed;
  std::vector<std::byte> piece(piece_bytes);
  std::uint32_t size = 0;  // of the line so far
  const auto record = [&] {
    return to.subspan(static_cast<std::size_t>((line - range.first) * input_.type_.size), input_.type_.size);
  };
  const auto end_line = [&] {
    if (line >= range.first) std::memcpy(record().data(), &size, sizeof(size));
    size = 0;
    ++line;
  };
  while (line < range.end() && at < file_->length()) {
    const auto part =
        std::span(piece).first(static_cast<std::size_t>(std::min(file_->length() - at, piece_bytes)));
    if (auto read = file_->read(at, part); !read) return read;
    for (std::size_t i = 0; i < part.size() && line < range.end(); ++i) {
      if (part[i] == newline) {
        end_line();
        continue;
      }
      if (size == input_.longest_line_)
        return Error(Errc::io,
                     text("File '", *input_.path_, "' has changed: line ", line + 1, " is longer."));
      if (line >= range.first) record()[sizeof(size) + size] = part[i];
      ++size;
    }
    at += part.size();
  }
  if (line < range.end() && size != 0) end_line();
  if (line < range.end())
    return Error(Errc::io, text("File '", *input_.path_, "' has changed: it has fewer lines."));
  return {};
}

Result<void> Source::read(const RecordRange& range, std::span<std::byte> to) const {
  const std::uint64_t offset = range.first * input_.type_.size;
  if (input_.longest_line_ != 0) return read_lines(range, to);
  if (file_) return file_->read(offset, to);
  if (input_.make_)
    return called("The function that makes records", [&] {
      return input_.make_(range.first, to.data(), static_cast<std::size_t>(range.count));
    });
  std::memcpy(to.data(), input_.memory_.data() + offset, to.size());
  return {};
}

std::string Source::identity() const {
  if (file_) return text("in file '", *input_.path_, "' (", file_->identity(), ")");
  if (input_.make_) return "made by a function";
  return text("in memory (", process::checksum_of(input_.memory_), ")");
}

std::string Sink::identity() const {
  if (file_) return text("to file '", *output_.path_, "'");
  return output_.take_ ? "to a function" : "to memory";
}

Result<bool> Sink::has(const RecordRange& range, std::string_view checksum) const {
  std::vector<std::byte> results(static_cast<std::size_t>(range.count * output_.type_.size));
  if (auto read = file_->read(range.first * output_.type_.size, results); !read)
    return std::move(read).error();
  return process::checksum_of(results) == checksum;
}

Result<Sink> Sink::open(RecordOutput output, const Source& source) {
  const std::uint64_t count = source.count();
  const std::size_t size = output.type_.size;
  Sink sink(std::move(output));
  if (sink.is_in_order()) return sink;
  if (!sink.output_.path_) {
    const std::size_t results = sink.output_.memory_.size() / size;
    if (results != count)
      return Error(Errc::invalid_argument, text("The number of results (", results,
                                                ") differs from the number of records (", count, ")."));
    return sink;
  }
  if (source.is_file(*sink.output_.path_))
    return Error(Errc::invalid_argument,
                 text("File '", *sink.output_.path_, "' has the records: the results need another file."));
  auto file = WholeFile::create(*sink.output_.path_, count * size);
  if (!file) return std::move(file).error();
  sink.file_.emplace(*std::move(file));
  return sink;
}

Result<void> Sink::write(const RecordRange& range, std::span<const std::byte> results) {
  if (is_in_order()) {
    waiting_[range.first] = {range.count, std::vector<std::byte>(results.begin(), results.end())};
    return pass_on();
  }
  const std::uint64_t offset = range.first * output_.type_.size;
  if (file_) return file_->write(offset, results);
  std::memcpy(output_.memory_.data() + offset, results.data(), results.size());
  return {};
}

Result<void> Sink::write_failed(const RecordRange& range) {
  std::vector<std::byte> results;
  if (!output_.on_failure_.empty())
    for (std::uint64_t r = 0; r < range.count; ++r)
      results.insert(results.end(), output_.on_failure_.begin(), output_.on_failure_.end());
  if (results.empty() && !is_in_order()) return {};
  return write(range, results);
}

/// Passes on the results that have no earlier ones before them.
Result<void> Sink::pass_on() {
  if (refused_) return *refused_;
  for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
       first = waiting_.begin()) {
    const auto [count, results] = std::move(first->second);
    waiting_.erase(first);
    const std::uint64_t begin = std::exchange(next_, next_ + count);
    if (results.empty()) continue;
    auto taken = called("The function that takes results", [&, &bytes = results] {
      return output_.take_(begin, bytes.data(), bytes.size() / output_.type_.size);
    });
    if (!taken) {
      refused_ = taken.error();
      return taken;
    }
  }
  return {};
}

}  // namespace wye::records
