#pragma once
// Uses what it does not include.
inline Missing not_alone() { return {}; }
