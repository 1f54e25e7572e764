#pragma once
/// The distribution of the rows of a matrix over items, for row-wise workloads.
#include <wye/base/extent.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "steps.hpp"

namespace wye::inline v0::workloads {

/// The longest stretch of a row that one workgroup of 256 works on alone. A longer row is cut into
/// pieces of this length and processed in two steps: sums of each piece, then the result from the
/// sums of the row.
inline constexpr std::uint32_t longest_piece = 65536;

/// The type of sums of `T`: float for elements of 16 bits.
template <class T>
using SumOf = std::conditional_t<sizeof(T) == 2, float, T>;

/// A kernel parameter, also declared in `shaders/include/rows.glsl`.
struct RowSplit {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t lanes_log2 = 0;  ///< 2^lanes_log2 items work on one piece
  std::uint32_t pieces = 1;      ///< of one row

  std::uint64_t all_pieces() const { return std::uint64_t{rows} * pieces; }
  Extent3 items() const { return flat(all_pieces() << lanes_log2); }
};

/// The fewest items of one call of a host function, for rows of one piece and for rows of several.
inline constexpr Extent3 row_tile{1024}, piece_tile{256};

/// Returns the reason, for `workload`, if a matrix of `size` numbers cannot have rows of `columns`.
std::optional<std::string> no_rows(std::string_view workload, std::uint64_t size, std::uint64_t columns);
/// The same if a vector x of `size` numbers cannot have one row for each of `rows` results (or
/// `of_rows`).
std::optional<std::string> no_columns(std::string_view workload, std::uint64_t size, std::uint64_t rows,
                                      std::string_view of_rows = "results");
/// The same if vectors `x` and `y` do not have the same size.
std::optional<std::string> not_as_long(std::string_view workload, std::string_view x, std::uint64_t size,
                                       std::string_view y, std::uint64_t size_of_y);

/// The same if `offsets`, one more than there are sequences, are not those of `rows` rows.
std::optional<std::string> no_offsets(std::string_view workload, std::span<const std::uint32_t> offsets,
                                      std::uint64_t rows);

/// Distributes valid rows, which may be empty: about four columns per item, until 256 items share a
/// piece.
inline RowSplit split_of(std::uint64_t rows, std::uint64_t columns) {
  RowSplit split{.rows = static_cast<std::uint32_t>(rows), .columns = static_cast<std::uint32_t>(columns)};
  while (split.lanes_log2 < 8 && columns > (std::uint64_t{4} << split.lanes_log2)) ++split.lanes_log2;
  if (columns > longest_piece) split.pieces = (split.columns - 1) / longest_piece + 1;
  return split;
}
inline RowSplit split_rows(std::uint64_t size, std::uint64_t columns) {
  return split_of(columns == 0 ? 0 : size / columns, columns);
}
/// Distributes the elements of x over valid rows of a known number.
inline RowSplit split_columns(std::uint64_t size, std::uint64_t rows) {
  return split_of(rows, rows == 0 ? 0 : size / rows);
}

/// A stretch of a row.
struct Piece {
  std::uint64_t number;  ///< of all pieces of all rows
  std::uint64_t row;
  std::uint64_t first;  ///< element of the matrix
  std::uint64_t size;
};

/// Returns the pieces that the items of `range` process. Ranges of a multiple of 256 items have
/// whole pieces.
inline Range pieces_of(Range range, RowSplit split) {
  const Range items = below(range, split.all_pieces() << split.lanes_log2);
  return {items.first >> split.lanes_log2, items.last >> split.lanes_log2, range.grid};
}

inline Piece piece(std::uint64_t number, RowSplit split) {
  const std::uint64_t row = number / split.pieces;
  const std::uint64_t column = (number - row * split.pieces) * longest_piece;
  return {number, row, row * split.columns + column,
          std::min<std::uint64_t>(longest_piece, split.columns - column)};
}

}  // namespace wye::workloads
