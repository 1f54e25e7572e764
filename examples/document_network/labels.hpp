#pragma once
/// Places names beside discs without overlap.
#include <string_view>
#include <vector>

#include "canvas.hpp"

namespace document_network {

class Labels {
 public:
  explicit Labels(Canvas& page) : page_(page) {}
  /// Reserves a place that names must not cover.
  void keep_clear(const Box& box) { taken_.push_back(box); }
  void keep_clear(Point center, double radius);
  /// Writes `text` beside the disc, or at a distance with a line to it. Writes nothing if there is
  /// no room `within` the box. Returns whether it wrote.
  bool place(Point center, double radius, std::string_view text, const Style& style, const Box& within);

 private:
  bool is_free(const Box& box, const Box& within) const;
  Canvas& page_;
  std::vector<Box> taken_;
};

}  // namespace document_network
