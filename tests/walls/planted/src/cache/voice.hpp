#pragma once
/// Nobody waits. A function asks who
/// comes next.
/// Returns what was built, or `what()`.
/// Takes the one that is free.
// Whole, as far as the store allows.
// Starts a thread so that the caller never does.

// Where a file is missing, it is written; else it is read.
const char* const sentence = "what is in a string counts elsewhere";  // A directory where files lie.
