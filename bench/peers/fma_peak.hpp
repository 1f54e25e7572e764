#pragma once
// How fast this processor can multiply and add.

namespace wye_bench {

// Does about `operations` float multiplications and additions on one thread, with the widest
// vectors there are, on numbers that never leave their registers.
void multiply_and_add(double operations);

}  // namespace wye_bench
