#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <numeric>

#include "canvas.hpp"
#include "labels.hpp"
#include "pictures.hpp"

namespace document_network {
namespace {

constexpr int page_width = 1640;
constexpr std::size_t most_lanes = 7, names_per_lane = 4, most_marks = 120;
constexpr double left = 270, right = 1540, lanes_top = 280, lane_height = 92;
constexpr double largest_radius = 28, smallest_largest = 17;

/// The time range of the picture, seconds since 1970, and its position.
struct Axis {
  std::int64_t first = 0, last = 0;
  double x(std::int64_t time) const {
    return last > first
               ? left + (right - left) * static_cast<double>(time - first) / static_cast<double>(last - first)
               : (left + right) / 2;
  }
};

std::tm calendar(std::int64_t time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

std::string date(std::int64_t time, const char* format) {
  const std::tm parts = calendar(time);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

struct Tick {
  std::int64_t time;
  std::string text;
};

/// Returns a few round dates: years, months, days or minutes, depending on the range.
std::vector<Tick> ticks(const Axis& axis) {
  constexpr std::int64_t minute = 60, day = 86400, year = 365 * day;
  const std::int64_t span = axis.last - axis.first;
  if (span == 0) return {{axis.first, date(axis.first, "%Y-%m-%d")}};
  std::vector<Tick> list;
  if (span < 60 * day) {
    std::int64_t step = minute;
    for (const std::int64_t longer : {5 * minute, 30 * minute, 120 * minute, day / 4, day, 2 * day, 7 * day})
      if (span / step > 12) step = longer;
    const char* format = step < day ? "%b %d %H:%M" : "%Y-%m-%d";
    for (std::int64_t at = axis.first + (step - axis.first % step) % step; at <= axis.last; at += step)
      list.push_back({at, date(at, format)});
    if (list.size() < 2)
      return {{axis.first, date(axis.first, "%H:%M:%S")}, {axis.last, date(axis.last, "%H:%M:%S")}};
    return list;
  }
  int months = 1;
  for (const int longer : {3, 6, 12, 24, 60, 120, 240, 600, 1200})
    if (span / (months * year / 12) > 14) months = longer;
  const std::tm start = calendar(axis.first);
  for (int month = (start.tm_year * 12 + start.tm_mon) / months * months;; month += months) {
    std::tm parts{};
    parts.tm_year = month / 12;
    parts.tm_mon = month % 12;
    parts.tm_mday = 1;
    const auto at = static_cast<std::int64_t>(::timegm(&parts));
    if (at > axis.last) return list;
    if (at >= axis.first) list.push_back({at, date(at, months < 12 ? "%b %Y" : "%Y")});
  }
}

/// Returns the share of a document's rank that remains at its age.
void draw_decay(Canvas& page, double decay) {
  constexpr double base = lanes_top - 34, height = 80;
  std::vector<Point> curve{{right, base}, {left, base}};
  constexpr int steps = 200;
  for (int i = 0; i <= steps; ++i) {
    const double position = static_cast<double>(i) / steps;
    curve.push_back({left + (right - left) * position, base - height * std::exp(-decay * (1 - position))});
  }
  page.area(curve, kind_color(5).fade(0.35));
  page.line({left, base}, {right, base}, colors::faint);
  char least[32];
  std::snprintf(least, sizeof least, "%.2f", std::exp(-decay));
  const Style style{.size = 15, .color = colors::quiet};
  page.write({left - 24, base - 8}, "weight by age", {.size = 17, .color = colors::quiet, .align = 1});
  page.write({left, base - height * std::exp(-decay) - 8}, least, style);
  page.write({right + 8, base - height + 6}, "1", style);
}

/// Documents of one group at the same position in time.
struct Mark {
  std::vector<std::uint32_t> documents;  ///< most important first
  double importance = 0;
  double relevance = 0;
  Point center;
  double radius = 0;
  bool has_room = false;
};

/// A row of the picture.
struct Lane {
  std::string title;
  std::size_t documents = 0;
  Box box;
  std::vector<Mark> marks;  ///< most important first
  bool is_whole = true;     ///< every document has a mark
};

/// Returns the marks of a lane's documents, at most as many as can be distinguished.
std::vector<Mark> marks_of(std::vector<std::uint32_t> documents, const std::vector<Document>& all,
                           const std::vector<Moment>& moments, const Axis& axis) {
  std::stable_sort(documents.begin(), documents.end(), [&](auto a, auto b) {
    if (all[a].known != all[b].known) return all[a].known;
    return moments[a].importance > moments[b].importance;
  });
  std::map<std::pair<std::uint32_t, long>, Mark> marks;
  for (const std::uint32_t document : documents) {
    const double x = axis.x(all[document].modified);
    Mark& mark = marks[{moments[document].group, std::lround(x / 2)}];
    if (mark.documents.empty()) mark.center.x = x;
    mark.documents.push_back(document);
    mark.importance += moments[document].importance;
    mark.relevance = std::max(mark.relevance, moments[document].relevance);
  }
  std::vector<Mark> list;
  for (auto& [place, mark] : marks) list.push_back(std::move(mark));
  std::stable_sort(list.begin(), list.end(),
                   [](const Mark& a, const Mark& b) { return a.importance > b.importance; });
  if (list.size() > most_marks) list.resize(most_marks);
  return list;
}

/// Moves a lane's marks away from its middle until none overlap. Returns whether all have room.
bool spread(Lane& lane) {
  const double middle = lane.box.y + lane.box.height / 2;
  for (std::size_t i = 0; i < lane.marks.size(); ++i) {
    Mark& mark = lane.marks[i];
    const auto try_at = [&](double y) {
      mark.center.y = y;
      mark.has_room = std::none_of(
          lane.marks.begin(), lane.marks.begin() + static_cast<std::ptrdiff_t>(i), [&](const Mark& other) {
            return other.has_room && std::hypot(other.center.x - mark.center.x, other.center.y - y) <
                                         other.radius + mark.radius + 1;
          });
      return mark.has_room;
    };
    const double reach = lane.box.height / 2 - mark.radius - 3;
    for (double offset = 0; offset <= reach; ++offset)
      if (try_at(middle - offset) || try_at(middle + offset)) break;
  }
  return std::all_of(lane.marks.begin(), lane.marks.end(), [](const Mark& mark) { return mark.has_room; });
}

/// Sets the size of all marks, the largest at which they fit, and their positions. Marks without
/// room are dropped.
void place_marks(std::vector<Lane>& lanes) {
  double top = 1e-30;
  for (const Lane& lane : lanes)
    for (const Mark& mark : lane.marks) top = std::max(top, mark.importance);
  bool fits = false;
  for (double largest = largest_radius; !fits && largest > smallest_largest; largest *= 0.93) {
    fits = true;
    for (Lane& lane : lanes) {
      for (Mark& mark : lane.marks) mark.radius = std::max(2.0, largest * std::sqrt(mark.importance / top));
      fits = spread(lane) && fits;
    }
  }
  for (Lane& lane : lanes) {
    std::size_t shown = 0;
    std::erase_if(lane.marks, [](const Mark& mark) { return !mark.has_room; });
    for (const Mark& mark : lane.marks) shown += mark.documents.size();
    lane.is_whole = shown == lane.documents;
  }
}

/// The most important groups of today have a lane each; the others share the last.
std::vector<Lane> lanes_of(const std::vector<Document>& documents, const std::vector<Moment>& moments,
                           const Groups& groups, const std::vector<float>& rank, const Axis& axis) {
  std::vector<double> weight(groups.members.size());
  for (const Moment& moment : moments) weight[moment.group] += moment.importance;
  std::vector<std::uint32_t> order(groups.members.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return weight[a] > weight[b]; });

  std::vector<Lane> lanes;
  double y = lanes_top;
  const std::size_t own = std::min(most_lanes, order.size());
  for (std::size_t i = 0; i < own; ++i, y += lane_height)
    lanes.push_back({documents[speaker(groups, order[i], documents, rank)].label,
                     groups.members[order[i]].size(), Box{60, y, page_width - 120, lane_height},
                     marks_of(groups.members[order[i]], documents, moments, axis)});
  if (own == order.size()) return lanes;
  std::vector<std::uint32_t> rest;
  for (std::size_t i = own; i < order.size(); ++i)
    rest.insert(rest.end(), groups.members[order[i]].begin(), groups.members[order[i]].end());
  lanes.push_back({with_commas(order.size() - own) + " other groups", rest.size(),
                   Box{60, y, page_width - 120, 2.4 * lane_height},
                   marks_of(rest, documents, moments, axis)});
  return lanes;
}

void draw_axis(Canvas& page, const Axis& axis, double bottom) {
  double taken_to = 0;
  const Style style{.size = 17, .color = colors::quiet, .align = 0.5};
  for (const Tick& tick : ticks(axis)) {
    const double x = axis.x(tick.time), half = page.measure(tick.text, style) / 2;
    page.line({x, lanes_top}, {x, bottom + 8}, colors::faint);
    if (x - half < taken_to) continue;
    taken_to = x + half + 12;
    page.write({x, bottom + 30}, tick.text, style);
  }
}

/// Labels the marks of a lane that are well known, and the most important ones.
void name_marks(Canvas& page, Labels& labels, const Lane& lane, const std::vector<Document>& documents) {
  const Box room{lane.box.x, lane.box.y - 4, lane.box.width + 60, lane.box.height + 8};
  std::size_t names = 0;
  for (const bool known : {true, false})
    for (const Mark& mark : lane.marks) {
      const Document& first = documents[mark.documents[0]];
      if (first.known != known || names == names_per_lane) continue;
      const Style style{.size = 14, .bold = known, .outline = true};
      std::string name = page.fit(first.label, 180, style);
      if (mark.documents.size() > 1) name += " +" + with_commas(mark.documents.size() - 1);
      names += labels.place(mark.center, mark.radius, name, style, room);
    }
}

}  // namespace

std::string draw_timeline(const std::vector<Document>& documents, const std::vector<Moment>& moments,
                          const Groups& groups, const std::vector<float>& rank, double decay) {
  Axis axis{documents[0].modified, documents[0].modified};
  for (const Document& document : documents) {
    axis.first = std::min(axis.first, document.modified);
    axis.last = std::max(axis.last, document.modified);
  }
  std::vector<Lane> lanes = lanes_of(documents, moments, groups, rank, axis);
  place_marks(lanes);
  const double bottom = lanes.back().box.bottom();

  Canvas page(page_width, static_cast<int>(bottom) + 110);
  page.headline(
      "Most important today",
      with_commas(documents.size()) + (documents.size() == 1 ? " document" : " documents") +
          " by the date of their files. Area: rank, reduced by age. Strong colour: similar to another.");
  draw_decay(page, decay);
  for (std::size_t i = 0; i < lanes.size(); i += 2) page.fill(lanes[i].box, colors::wash);
  draw_axis(page, axis, bottom);

  Labels labels(page);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const Lane& lane = lanes[i];
    const double middle = lane.box.y + lane.box.height / 2;
    const Style title{.size = 17, .bold = true, .align = 1};
    page.write({left - 24, middle - 2}, page.fit(lane.title, left - 96, title), title);
    page.write({left - 24, middle + 19},
               with_commas(lane.documents) + (lane.documents == 1 ? " document" : " documents"),
               {.size = 15, .color = colors::quiet, .align = 1});
    const Color color = kind_color(i < most_lanes ? i : most_lanes);
    for (const Mark& mark : lane.marks) {
      page.disc(mark.center, mark.radius, color.fade(0.2 + 0.7 * mark.relevance));
      labels.keep_clear(mark.center, mark.radius);
    }
  }
  for (const Lane& lane : lanes) name_marks(page, labels, lane, documents);
  const bool are_whole =
      std::all_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.is_whole; });
  page.footnote(
      std::string("Rows: the most important groups of today, named after their best known or highest ranked "
                  "document. +3: three more of the same date.") +
      (are_whole ? "" : " The least important are left out if there is no room."));
  return page.png();
}

}  // namespace document_network
