// Copyright and licence: Apache-2.0, as the package.
// Verilator prints constant infinities and NaN as `inf` and `nan`, which C++ does not read as numbers.
#include <cmath>
#include "verilated.h"
#define inf __builtin_inf()
#define nan __builtin_nan("")
