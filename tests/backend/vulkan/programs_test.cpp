// Random programs of commands have the results of a model on the host, on every path of the bytes.
#include <algorithm>
#include <array>

#include "backend/vulkan/rig.hpp"
#include "support/sanitizers.hpp"

namespace wye::test {
namespace {

/// Buffers on the device, the same as vectors, and the downloads that are on their way.
class Program {
 public:
  Program(Rig& rig, Twin twin, std::uint64_t seed, std::size_t most_words) : rig_(rig), random_(seed) {
    add_ = rig.kernel("add", twin);
    mix_ = rig.kernel("mix", twin);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const std::size_t words = most_words / 2 + random_() % (most_words / 2);
      model_[i] = random_words(random_(), words);
      buffers_[i] = rig.buffer(model_[i]);
    }
    for (Side& side : sides_) side.lane = rig.lane();
  }

  void run(int commands) {
    for (int i = 0; i < commands; ++i) {
      Side& side = sides_[random_() % sides_.size()];
      if (&side != last_) cross(side);
      command(side);
      switch (random_() % 9) {
        case 0: side.lane->submit(); break;
        case 1:
          settle(*side.lane);
          arrived(side);
          break;
        default: break;
      }
    }
    for (Side& side : sides_) {
      settle(*side.lane);
      arrived(side);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      INFO("buffer " << i);
      CHECK(difference(rig_.read(buffers_[i]), model_[i]) == "");
    }
  }

 private:
  struct Download {
    std::vector<Word> target, model;
  };
  struct Side {
    std::unique_ptr<Lane> lane;
    std::vector<std::unique_ptr<Download>> downloads;
  };
  struct Piece {
    std::size_t buffer, first, count;
  };

  /// Orders later commands on `side` after all earlier commands on the other side.
  void cross(Side& side) {
    if (last_) {
      const TimelinePoint point = last_->lane->submit();
      if (point.value != 0) side.lane->wait_for(point);
    }
    last_ = &side;
  }

  Piece piece() {
    const std::size_t buffer = random_() % buffers_.size(), words = model_[buffer].size();
    const std::size_t first =
        random_() % 3 == 0 ? 0 : random_() % words / 16 * 16;  // as descriptors have to begin
    return {buffer, first, random_() % 4 == 0 ? words - first : random_() % (words - first + 1)};
  }
  BufferRange range_of(const Piece& p) const { return range(buffers_[p.buffer], 4 * p.first, 4 * p.count); }
  Word* model_of(const Piece& p) { return model_[p.buffer].data() + p.first; }

  void command(Side& side) {
    Lane& lane = *side.lane;
    const Piece p = piece();
    const Word by = static_cast<Word>(random_());
    switch (random_() % 6) {
      case 0: {
        std::vector<Word> source = random_words(random_(), p.count);
        lane.upload(bytes_of(source), range_of(p));
        std::copy(source.begin(), source.end(), model_of(p));
        lane.submit();  // the source ends here
        break;
      }
      case 1: {
        auto& d = *side.downloads.emplace_back(std::make_unique<Download>());
        d.target.assign(p.count, 0xdeadbeef);
        d.model.assign(model_of(p), model_of(p) + p.count);
        lane.download(range_of(p), writable_bytes_of(d.target));
        break;
      }
      case 2:
        lane.fill(range_of(p), by);
        std::fill_n(model_of(p), p.count, by);
        break;
      case 3: {
        Piece to = piece();
        if (to.buffer == p.buffer) break;
        to.count = std::min(to.count, p.count);
        lane.copy(range_of({p.buffer, p.first, to.count}), range_of(to));
        std::copy_n(model_of(p), to.count, model_of(to));
        break;
      }
      case 4:
        lane.dispatch(add_, arguments_of(argument(buffers_[p.buffer], p.first, p.count), by), p.count);
        for (std::size_t i = 0; i < p.count; ++i) model_of(p)[i] += by;
        break;
      case 5: {
        Piece to = piece();
        if (to.buffer == p.buffer || to.count > p.count) break;
        lane.dispatch(mix_,
                      arguments_of(argument(buffers_[p.buffer], p.first, p.count),
                                   argument(buffers_[to.buffer], to.first, to.count), by),
                      to.count);
        for (std::size_t i = 0; i < to.count; ++i)
          model_of(to)[i] = model_of(to)[i] * 3 + model_of(p)[i] + by;
        break;
      }
    }
  }

  static void arrived(Side& side) {
    for (const auto& d : side.downloads) CHECK(difference(d->target, d->model) == "");
    side.downloads.clear();
  }

  Rig& rig_;
  std::mt19937_64 random_;
  std::shared_ptr<ExecutableBase> add_, mix_;
  std::array<std::shared_ptr<BufferBase>, 4> buffers_;
  std::array<std::vector<Word>, 4> model_;
  std::array<Side, 2> sides_;
  Side* last_ = nullptr;
};

void run(const VulkanOptions& options, std::uint64_t seed, std::size_t words, int commands) {
  for (const Twin twin : {Twin::descriptors, Twin::addresses}) {
    Rig rig(options);
    for (std::uint64_t round = 0; round < 4; ++round)
      Program(rig, twin, seed * 100 + round, words).run(commands);
  }
}

TEST_CASE("random programs are right if the host shares the device's memory", "[vulkan]") {
  run({}, 1, 3000, 200);
}

TEST_CASE("random programs are right if all transfers are staged", "[vulkan]") {
  run({.host_visible = false}, 2, 3000, 200);
}

TEST_CASE("random programs are right if staging memory is short", "[vulkan]") {
  run({.host_visible = false, .staging_chunk = 64_KiB, .staging_budget = 256_KiB}, 3, 150000, 60);
}

TEST_CASE("random programs are right if shared memory is not coherent", "[vulkan]") {
  run({.host_coherent = false}, 4, 3000, 200);
}

TEST_CASE("random programs are right if downloads are large and in place", "[vulkan]") {
  run({}, 5, under_tsan ? 150000 : 600000, 40);
}

TEST_CASE("random programs are right if parameters spill", "[vulkan]") {
  run({.parameter_bytes = Bytes{4}}, 6, 3000, 100);
}

}  // namespace
}  // namespace wye::test
