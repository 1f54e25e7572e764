#pragma once
// The order of operations that streams, events and waits ensure, whatever their timing: vector clocks. An operation may use
// memory only behind its allocation, and memory may be freed only behind its last use.
#include "support/cuda/world.hpp"

namespace standin {

class Stream;

/// A stream takes part in the order until it has ended: its operations are then complete.
void enter(const Stream& stream);
void leave(const Stream& stream);
/// Begins the next operation of `stream`, behind all that a thread of the host has seen complete.
void begin(Stream& stream);
/// Returns when all operations of `stream` so far are complete.
Moment moment_of(const Stream& stream);
/// Has later operations of `stream` begin after `moment`.
void await(Stream& stream, const Moment& moment);
/// Notes that the host knows the operations before `moment` to be complete.
void see(const Moment& moment);
/// Notes that of all operations so far, of all streams.
void see_all();

/// Notes that the operation that `stream` has begun allocates, uses or frees memory. Breaks the device if nothing orders a use
/// behind its allocation or a free behind a use. Memory that is not stream-ordered has no such order.
void note_allocation(Stream& stream, CUdeviceptr address);
void note_use(Stream& stream, CUdeviceptr address, const char* what);
void note_free(Stream& stream, CUdeviceptr address);
/// Notes the use of all memory that the 8-byte words of a kernel's parameters may refer to.
void note_parameters(Stream& stream, const std::vector<std::byte>& parameters);

}  // namespace standin
