#include "labels.hpp"

#include <algorithm>
#include <cmath>

namespace document_network {

void Labels::keep_clear(Point center, double radius) {
  const double half = radius * 0.8;  // the corners of a disc's square are free
  taken_.push_back({center.x - half, center.y - half, 2 * half, 2 * half});
}

bool Labels::is_free(const Box& box, const Box& within) const {
  return box.x >= within.x && box.right() <= within.right() && box.y >= within.y &&
         box.bottom() <= within.bottom() &&
         std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) { return box.overlaps(other); });
}

bool Labels::place(Point center, double radius, std::string_view text, const Style& style,
                   const Box& within) {
  const double width = page_.measure(text, style), height = style.size;
  for (const double away : {4.0, 18.0, 40.0})
    for (const double degrees :
         {0.0, 180.0, 90.0, 270.0, 30.0, 330.0, 150.0, 210.0, 60.0, 300.0, 120.0, 240.0}) {
      const double turn = degrees * M_PI / 180, across = std::cos(turn), down = std::sin(turn);
      const Point edge{center.x + across * radius, center.y + down * radius};
      const Point anchor{center.x + across * (radius + away), center.y + down * (radius + away)};
      // The side of the text nearest to the disc touches the anchor.
      const Box box{anchor.x - width * (1 - across) / 2, anchor.y - height * (1 - down) / 2, width, height};
      if (!is_free(box, within)) continue;
      taken_.push_back({box.x - 8, box.y - 2, box.width + 16, box.height + 4});
      if (away > 10) page_.line(edge, anchor, colors::quiet, 1);
      Style written = style;
      written.align = 0;
      page_.write({box.x, box.y + height * 0.83}, text, written);
      return true;
    }
  return false;
}

}  // namespace document_network
