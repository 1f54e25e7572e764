#include "analysis.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <wye/workloads/attention_weights.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/pagerank.hpp>
#include <wye/workloads/similarity.hpp>
#include <wye/workloads/timeline.hpp>

namespace document_network {
namespace {

namespace workloads = wye::workloads;

constexpr std::size_t nearest_kept = 8;
/// Factor for similarities before softmax: 0.1 more similarity is worth e times the attention.
constexpr float sharpness = 10.0f;
/// A document's attention is divided into this many links.
constexpr float attention_parts = 32.0f;
/// Similarities in memory at a time: 64 MiB.
constexpr std::size_t most_similarities = std::size_t{16} << 20;

/// Measures the time that this program spends itself.
class HostTime {
 public:
  explicit HostTime(double& seconds) : seconds_(seconds) {}
  HostTime(const HostTime&) = delete;  // each interval is added once
  ~HostTime() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

/// Multiplies each row of `a` by each row of `b`, and the product by `scale`. The products of rows of
/// unit length are cosines.
wye::Job products(std::span<const float> a, std::span<const float> b, std::size_t columns,
                  std::span<float> result, float scale = 1) {
  return workloads::matmul(a, b, result,
                           {.rows = a.size() / columns, .columns = b.size() / columns, .inner = columns},
                           {.transposed_b = true}, {.scale = scale});
}

/// Compares all documents and keeps the nearest of each, with their attention. All similarities of
/// ten thousand documents would take 400 MB, so they are computed in blocks of rows.
wye::Result<void> relate(const Vectors& vectors, Runner& runner, wye::ProgressBars& progress,
                         Analysis& analysis) {
  const std::size_t count = vectors.rows;
  const std::size_t rows_at_once = std::clamp<std::size_t>(most_similarities / count, 1, count);
  analysis.neighbours.reserve(count);

  std::vector<float> scores;  // similarities times `sharpness`, then the attention
  for (std::size_t first = 0; first < count; first += rows_at_once) {
    progress.draw({.name = "comparing", .done = first, .total = count});
    const std::size_t rows = std::min(rows_at_once, count - first);
    scores.resize(rows * count);
    auto compared = runner.run("similarity", std::span(scores), [&](std::span<float> result) {
      if (rows == count) return workloads::similarity(vectors.values, result, vectors.columns);
      const std::span some =
          std::span(vectors.values).subspan(first * vectors.columns, rows * vectors.columns);
      return products(some, vectors.values, vectors.columns, result, sharpness);
    });
    if (!compared) return compared;

    const auto row = [&](std::size_t document) {
      return std::span(scores).subspan((document - first) * count, count);
    };
    {
      const HostTime time(analysis.host_seconds);
      if (rows == count)
        for (float& score : scores) score *= sharpness;
      for (std::size_t document = first; document < first + rows; ++document)
        analysis.neighbours.push_back(
            nearest(static_cast<std::uint32_t>(document), row(document), nearest_kept));
    }
    auto weighed = runner.run("attention", std::span(scores), [&](std::span<float> values) {
      return workloads::attention_weights(values, {.columns = count});
    });
    if (!weighed) return weighed;

    const HostTime time(analysis.host_seconds);
    for (std::size_t document = first; document < first + rows; ++document)
      for (Link& link : analysis.neighbours[document]) {
        link.similarity /= sharpness;
        link.weight = row(document)[link.to];
      }
  }
  return {};
}

/// Computes the map from the means of the vectors that share a row: the mean of all products of two
/// sets of vectors is the product of their means.
wye::Result<void> map_similarities(const Vectors& vectors, Runner& runner, Analysis& analysis) {
  const std::size_t count = vectors.rows, side = std::min(count, SimilarityMap::largest_side);
  std::vector<float> means(side * vectors.columns), similarities(side * side);
  {
    const HostTime time(analysis.host_seconds);
    std::size_t place = 0;
    for (const std::vector<std::uint32_t>& members : analysis.groups.members)
      for (const std::uint32_t document : members) {
        const std::size_t row = place++ * side / count;
        // The row has the places from ceil(row * count / side) to before ceil((row + 1) * count / side).
        const std::size_t sharing = ((row + 1) * count + side - 1) / side - (row * count + side - 1) / side;
        const float* const from = vectors.values.data() + document * vectors.columns;
        float* const to = means.data() + row * vectors.columns;
        for (std::size_t i = 0; i < vectors.columns; ++i) to[i] += from[i] / static_cast<float>(sharing);
      }
  }
  auto compared = runner.run("similarity", std::span(similarities), [&](std::span<float> result) {
    return products(means, means, vectors.columns, result);
  });
  if (!compared) return compared;
  const HostTime time(analysis.host_seconds);
  analysis.map = {side, std::vector<std::uint8_t>(side * side)};
  std::transform(similarities.begin(), similarities.end(), analysis.map.shades.begin(), [](float value) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 1.0f) * 255));
  });
  return {};
}

/// Returns the links for PageRank: to each neighbour as many as its parts of the attention, at
/// least one.
workloads::LinksTo links(const Neighbours& neighbours) {
  std::vector<std::uint32_t> offsets{0}, targets;
  for (const std::vector<Link>& of_one : neighbours) {
    float all = 0;
    for (const Link& link : of_one) all += link.weight;
    for (const Link& link : of_one) {
      const long parts = std::lround(attention_parts * link.weight / std::max(all, 1e-30f));
      targets.insert(targets.end(), static_cast<std::size_t>(std::max(1L, parts)), link.to);
    }
    offsets.push_back(static_cast<std::uint32_t>(targets.size()));
  }
  return workloads::links_to(offsets, targets);
}

wye::Result<void> rank(Runner& runner, Analysis& analysis) {
  workloads::LinksTo graph;
  {
    const HostTime time(analysis.host_seconds);
    graph = links(analysis.neighbours);
    analysis.groups = find_groups(analysis.neighbours);
  }
  analysis.rank.resize(analysis.neighbours.size());
  workloads::PageRankSummary summary;
  return runner.run("pagerank", std::span(analysis.rank), [&](std::span<float> ranks) {
    return workloads::pagerank(graph.offsets, graph.sources, ranks, std::span(&summary, 1),
                               {.tolerance = 1e-7f});
  });
}

/// Reduces a document's rank by its age. The oldest date is 0; the newest is 1, which is now.
wye::Result<void> date(const std::vector<Document>& documents, Runner& runner, Analysis& analysis) {
  const auto [oldest, newest] =
      std::minmax_element(documents.begin(), documents.end(),
                          [](const Document& a, const Document& b) { return a.modified < b.modified; });
  const double span = static_cast<double>(newest->modified - oldest->modified);
  const float top = *std::max_element(analysis.rank.begin(), analysis.rank.end());
  std::vector<workloads::Evidence> evidence;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::vector<Link>& links_of_it = analysis.neighbours[i];
    const double age = static_cast<double>(newest->modified - documents[i].modified);
    evidence.push_back({.timestamp = span > 0 ? static_cast<float>(1 - age / span) : 1.0f,
                        .importance = analysis.rank[i] / top,
                        .category = analysis.groups.of[i],
                        .relevance = links_of_it.empty() ? 0.0f : std::min(1.0f, links_of_it[0].similarity)});
  }
  std::vector<workloads::TimelinePoint> points(evidence.size());
  auto placed = runner.run(
      "timeline", std::span(points),
      [&](std::span<workloads::TimelinePoint> result) {
        return workloads::timeline(evidence, result, {.now = 1.0f, .decay = importance_decay});
      },
      [](const workloads::TimelinePoint& point) { return point.importance; });
  if (!placed) return placed;
  for (const workloads::TimelinePoint& point : points)
    analysis.moments.push_back({static_cast<double>(point.position), static_cast<double>(point.importance),
                                static_cast<double>(point.relevance), point.category});
  return {};
}

}  // namespace

wye::Result<void> compare_with(std::span<const float> row, std::span<const float> rows,
                               std::vector<float>& similarities, Runner& runner) {
  similarities.resize(rows.size() / row.size());
  return runner.run("answer", std::span(similarities),
                    [&](std::span<float> result) { return products(row, rows, row.size(), result); });
}

wye::Result<Analysis> analyse(const std::vector<Document>& documents, Vectors vectors, Runner& runner,
                              wye::ProgressBars& progress) {
  Analysis analysis;
  auto normalized = runner.run("normalize", std::span(vectors.values), [&](std::span<float> matrix) {
    return workloads::normalize(matrix, vectors.columns);
  });
  if (!normalized) return std::move(normalized).error();
  if (auto related = relate(vectors, runner, progress, analysis); !related) return std::move(related).error();
  progress.draw({.name = "ranking", .done = 0, .total = 2});
  if (auto ranked = rank(runner, analysis); !ranked) return std::move(ranked).error();
  progress.draw({.name = "ranking", .done = 1, .total = 2});
  if (auto drawn = map_similarities(vectors, runner, analysis); !drawn) return std::move(drawn).error();
  if (auto dated = date(documents, runner, analysis); !dated) return std::move(dated).error();
  return analysis;
}

}  // namespace document_network
