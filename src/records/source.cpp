#include "source.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "called.hpp"
#include "text.hpp"

namespace wye::inline v0::records {

Result<Source> Source::open(RecordInput input) {
  if (!input.path_) {
    const std::uint64_t count = input.count_;
    return Source(std::move(input), count);
  }
  auto file = WholeFile::open(*input.path_);
  if (!file) return std::move(file).error();
  const std::uint64_t size = input.type_.size;
  if (file->length() % size != 0)
    return Error(Errc::invalid_argument,
                 text("File '", *input.path_, "' ends with a cut record: its length (", file->length(),
                      " bytes) is no multiple of ", size, " bytes."));
  Source source(std::move(input), file->length() / size);
  source.file_.emplace(*std::move(file));
  return source;
}

Result<void> Source::read(const RecordRange& range, std::span<std::byte> to) const {
  const std::uint64_t offset = range.first * input_.type_.size;
  if (file_) return file_->read(offset, to);
  if (input_.make_)
    return called("The function that makes records", [&] {
      return input_.make_(range.first, to.data(), static_cast<std::size_t>(range.count));
    });
  std::memcpy(to.data(), input_.memory_.data() + offset, to.size());
  return {};
}

Result<Sink> Sink::open(RecordOutput output, const Source& source) {
  const std::uint64_t count = source.count();
  const std::size_t size = output.type_.size;
  Sink sink(std::move(output));
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
  const std::uint64_t offset = range.first * output_.type_.size;
  if (file_) return file_->write(offset, results);
  std::memcpy(output_.memory_.data() + offset, results.data(), results.size());
  return {};
}

Result<void> Sink::write_failed(const RecordRange& range) {
  if (output_.on_failure_.empty()) return {};
  for (std::uint64_t r = range.first; r < range.end(); ++r)
    if (auto ok = write({r, 1}, output_.on_failure_); !ok) return ok;
  return {};
}

}  // namespace wye::records
