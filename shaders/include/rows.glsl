// The distribution of the rows of a matrix over items, computed by `src/workloads/rows.hpp`.
struct RowSplit {
  uint rows;
  uint columns;
  uint lanes_log2;  // 2^lanes_log2 items work on one piece of a row
  uint pieces;      // of one row
};

const uint longest_piece = 65536;

struct Piece {
  uint number;  // of all pieces of all rows; those that do not exist have no columns
  uint row;
  uint first;   // its columns of the row: [first, last)
  uint last;
  uint lane;    // the index of this invocation among those of the piece
  uint lanes;
};

Piece piece_of(RowSplit split) {
  Piece p;
  p.number = flat_unit(split.lanes_log2);
  p.row = p.number / split.pieces;
  p.first = (p.number - p.row * split.pieces) * longest_piece;
  p.last = min(p.first + longest_piece, split.columns);
  p.lanes = 1 << split.lanes_log2;
  p.lane = invocation_index() & (p.lanes - 1);
  if (p.row >= split.rows) p.first = p.last = p.row = 0;
  return p;
}

// Returns the address of the first element of a row.
uvec2 row_address(uvec2 matrix, uint row, uint columns) { return element(matrix, product(row, columns)); }
