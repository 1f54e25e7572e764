#pragma once
// The order of operations that streams, events and waits ensure, whatever their timing: vector
// clocks. An operation may use memory only behind its allocation, and memory may be freed only
// behind its last use.
#include "support/cuda/world.hpp"

namespace standin {

class Stream;

/// Operations of one place in the order: a stream, or a node of a graph that a stream launches. To
/// other streams all nodes of a launch are one operation of its stream.
class Sequence {
 public:
  Sequence(int of, CUcontext in, unsigned as) : device(of), context(in), number(as) {}
  Sequence(const Sequence&) = delete;
  virtual ~Sequence() = default;
  virtual void push(std::function<void()> operation) = 0;
  const int device;
  const CUcontext context;
  const unsigned number;  // of the stream
  Moment moment{};        // when its operations so far are complete; under the world's mutex
};

/// A stream takes part in the order until it has ended: its operations are then complete.
void enter(const Stream& stream);
void leave(const Stream& stream);
/// Begins the next operation, behind all that a thread of the host has seen complete.
void begin(Sequence& on);
/// Returns when all operations so far are complete.
Moment moment_of(const Sequence& on);
/// Has later operations of `stream` begin after `moment`.
void await(Stream& stream, const Moment& moment);
/// Notes that the host knows the operations before `moment` to be complete.
void see(const Moment& moment);
/// Notes that of all operations so far, of all streams.
void see_all();

/// Notes that the operation that has begun allocates, uses or frees memory. Breaks the device if
/// nothing orders a use behind its allocation or a free behind a use. Memory that is not
/// stream-ordered has no such order.
void note_allocation(Sequence& on, CUdeviceptr address);
void note_use(Sequence& on, CUdeviceptr address, const char* what);
void note_free(Sequence& on, CUdeviceptr address);
/// Returns the 8-byte words of a kernel's parameters, each of which may be an address.
std::vector<CUdeviceptr> addresses_in(const std::vector<std::byte>& parameters);
/// Notes the use of all memory that the 8-byte words of a kernel's parameters may refer to.
void note_parameters(Sequence& on, const std::vector<std::byte>& parameters);

}  // namespace standin
