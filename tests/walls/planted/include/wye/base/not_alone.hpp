#pragma once
// Uses a type that it does not include.
inline Missing not_alone() { return {}; }
