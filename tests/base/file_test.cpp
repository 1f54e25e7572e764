#include "base/file.hpp"

#include <wye/base/log.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"

using namespace wye::base;
using namespace wye::literals;
using Content = std::vector<std::byte>;
namespace fs = std::filesystem;

namespace {

/// The modes of the files and directories that were synchronized with the disk.
std::vector<mode_t> synchronized;

}  // namespace

/// Replaces the system's function and records the files of its calls.
extern "C" int fsync(int file) {
  struct stat status {};
  if (::fstat(file, &status) == 0) synchronized.push_back(status.st_mode);
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace {

/// A directory of its own for each test, removed afterwards.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "wye-file-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()));
  }
  Scratch(const Scratch&) = delete;  // one owner removes it
  ~Scratch() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Content random_content(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Content content(size);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random() & 0xff);
  return content;
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is read with the content that was written", "[base]") {
  const Scratch scratch;
  for (std::size_t size : {0u, 1u, 4095u, 4096u, 300'001u}) {
    const Content content = random_content(size, 7);
    REQUIRE(write_file(scratch / "a", content));
    const auto read = read_file(scratch / "a");
    REQUIRE(read);
    REQUIRE(read->has_value());
    CHECK(**read == content);
  }
}

TEST_CASE("a durable write waits for the disk: the file first, then its directory", "[base]") {
  const Scratch scratch;
  const Content content = random_content(5000, 8);
  synchronized.clear();
  REQUIRE(write_file(scratch / "a", content));
  CHECK(synchronized.empty());
  REQUIRE(write_file(scratch / "a", content, Durability::power_cut));
  REQUIRE(synchronized.size() == 2);
  CHECK(S_ISREG(synchronized[0]));
  CHECK(S_ISDIR(synchronized[1]));
  const auto read = read_file(scratch / "a");
  REQUIRE(read);
  CHECK(**read == content);
}

TEST_CASE("reading a missing file returns nothing and is no error", "[base]") {
  const Scratch scratch;
  const auto read = read_file(scratch / "absent");
  REQUIRE(read);
  CHECK_FALSE(read->has_value());
  CHECK(read_file(scratch / "absent/deeper"));
  CHECK(remove_file(scratch / "absent"));
}

TEST_CASE("a file larger than the limit of the read is refused", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", random_content(2000, 1)));
  CHECK(read_file(scratch / "a", 2000_B));
  const auto refused = read_file(scratch / "a", 1999_B);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == wye::Errc::out_of_memory);
  CHECK(refused.error().sentence() ==
        "The size of file '" + scratch / "a" + "' (1.95 KiB) exceeds the limit of this read (1.95 KiB).");
}

TEST_CASE("only regular files are read, and a pipe does not block the reader", "[base]") {
  const Scratch scratch;
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(read_file(scratch / "pipe").error().sentence() ==
        "'" + scratch / "pipe" + "' is not a regular file.");
  CHECK(read_file(scratch.path()).error() == wye::Errc::io);
}

TEST_CASE("a written file has owner-only permissions and leaves no temporary file", "[base]") {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  const auto written = write_file(scratch / "a", random_content(10, 2));
  ::umask(before);
  REQUIRE(written);
  CHECK(mode_of(scratch / "a") == 0600);
  REQUIRE(write_file(scratch / "a", random_content(20, 3)));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a write that fails keeps the old file and leaves no temporary file", "[base]") {
  const Scratch scratch;
  const auto no_folder = write_file(scratch / "absent/a", random_content(10, 4));
  REQUIRE_FALSE(no_folder);
  CHECK(no_folder.error() == wye::Errc::io);
  CHECK(no_folder.error().sentence() ==
        "File '" + scratch / "absent/a" + "' cannot be written: No such file or directory.");
  REQUIRE(no_folder.error().native());
  CHECK(no_folder.error().native()->api == "mkostemps");
  CHECK(no_folder.error().native()->name == "ENOENT");

  fs::create_directory(scratch / "a");  // a file cannot be renamed to a directory
  fs::create_directory(scratch / "a/b");
  const auto taken = write_file(scratch / "a", random_content(10, 5));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().native()->api == "rename");
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a reader sees the old file or the new one, never a part", "[base]") {
  const Scratch scratch;
  const Content old_content(50'000, std::byte{1}), new_content(70'000, std::byte{2});
  REQUIRE(write_file(scratch / "a", old_content));
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      if (!write_file(scratch / "a", i % 2 ? old_content : new_content)) ++torn;
    }
    stop = true;
  });
  int reads = 0;
  do {
    const auto read = read_file(scratch / "a");
    if (!read || !read->has_value() || (**read != old_content && **read != new_content)) ++torn;
    ++reads;
  } while (!stop);
  writer.join();
  CHECK(torn == 0);
  CHECK(reads > 0);
}

TEST_CASE("a private directory is made with its parents", "[base]") {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  const auto made = make_private_directory(scratch / "a/b//c/");
  ::umask(before);
  REQUIRE(made);
  CHECK(mode_of(scratch / "a") == 0700);
  CHECK(mode_of(scratch / "a/b/c") == 0700);
  CHECK(make_private_directory(scratch / "a/b/c"));
}

TEST_CASE("a directory that others may write to is refused", "[base]") {
  const Scratch scratch;
  REQUIRE(make_private_directory(scratch / "a"));
  REQUIRE(::chmod((scratch / "a").c_str(), 0770) == 0);
  const auto group = make_private_directory(scratch / "a");
  REQUIRE_FALSE(group);
  CHECK(group.error().sentence() ==
        "Directory '" + scratch / "a" + "' has mode 0770: other users may write to it.");
  REQUIRE(::chmod((scratch / "a").c_str(), 0755) == 0);
  CHECK(make_private_directory(scratch / "a"));
}

TEST_CASE("a directory of another user is refused", "[base]") {
  const std::string other = ::geteuid() == 0 ? "" : "/usr";
  if (other.empty()) {
    const Scratch scratch;
    REQUIRE(make_private_directory(scratch / "a"));
    REQUIRE(::chown((scratch / "a").c_str(), 12345, 12345) == 0);
    CHECK(make_private_directory(scratch / "a").error().sentence() ==
          "Directory '" + scratch / "a" + "' belongs to user 12345; this process runs as user 0.");
  } else {
    CHECK(make_private_directory(other).error() == wye::Errc::io);
  }
}

TEST_CASE("a path that cannot be a directory is an error with the path", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", {}));
  CHECK(make_private_directory(scratch / "a").error().sentence() ==
        "'" + scratch / "a" + "' is not a directory.");
  CHECK(make_private_directory(scratch / "a/b").error() == wye::Errc::io);
  CHECK(make_private_directory("").error() == wye::Errc::io);
  CHECK(list_directory(scratch / "absent").error() == wye::Errc::io);
}

TEST_CASE("the entries of a directory are sorted", "[base]") {
  const Scratch scratch;
  for (const char* name : {"c", "a", ".b"}) REQUIRE(write_file(scratch / name, {}));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{".b", "a", "c"});
  REQUIRE(remove_file(scratch / "a"));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{".b", "c"});
}

TEST_CASE("only the regular files of a directory are listed, with size and age", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", random_content(123, 1)));
  fs::create_directory(scratch / "directory");
  fs::create_symlink("a", scratch / "link");
  fs::last_write_time(scratch / "a", fs::file_time_type::clock::now() - std::chrono::hours(2));
  const auto files = list_files(scratch.path());
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK(files->front().name == "a");
  CHECK(files->front().bytes == 123_B);
  CHECK(files->front().age > std::chrono::minutes(119));
  CHECK(files->front().age < std::chrono::minutes(121));
  CHECK(list_files(scratch / "absent")->empty());
  CHECK(list_files(scratch / "a").error() == wye::Errc::io);
}

TEST_CASE("a file that was replaced or freshened since it was seen is not removed", "[base]") {
  const Scratch scratch;
  const auto see = [&] { return list_files(scratch.path())->at(0); };
  REQUIRE(write_file(scratch / "a", random_content(10, 1)));
  const FileEntry first = see();
  REQUIRE(write_file(scratch / "a", random_content(10, 2)));
  CHECK(remove_unchanged(scratch / "a", first).value() == false);
  fs::last_write_time(scratch / "a", fs::file_time_type::clock::now() - std::chrono::hours(2));
  const FileEntry old = see();
  REQUIRE(freshen(scratch / "a", std::chrono::hours(1)));
  CHECK(remove_unchanged(scratch / "a", old).value() == false);
  CHECK(remove_unchanged(scratch / "a", see()).value() == true);
  CHECK_FALSE(fs::exists(scratch / "a"));
  CHECK(remove_unchanged(scratch / "a", old).value() == false);
}

TEST_CASE("a file is freshened only if it is old enough", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", {}));
  const auto two_hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(scratch / "a", two_hours_ago);
  const auto set = fs::last_write_time(scratch / "a");
  struct stat before {
  }, after{};
  REQUIRE(::stat((scratch / "a").c_str(), &before) == 0);
  REQUIRE(freshen(scratch / "a", std::chrono::hours(3)));
  CHECK(fs::last_write_time(scratch / "a") == set);
  REQUIRE(freshen(scratch / "a", std::chrono::hours(1)));
  CHECK(fs::last_write_time(scratch / "a") > set + std::chrono::minutes(119));
  REQUIRE(::stat((scratch / "a").c_str(), &after) == 0);
  CHECK(before.st_atim.tv_sec == after.st_atim.tv_sec);
  CHECK(before.st_atim.tv_nsec == after.st_atim.tv_nsec);
  CHECK(freshen(scratch / "absent", std::chrono::hours(1)).error() == wye::Errc::io);
}

TEST_CASE("a place of a file has one holder, among threads too", "[base]") {
  const Scratch scratch;
  auto held = FileLock::acquire(scratch / "locks", 7, {});
  REQUIRE(held);
  REQUIRE(*held);
  CHECK(mode_of(scratch / "locks") == 0600);
  CHECK_FALSE(FileLock::acquire(scratch / "locks", 7, {}).value());
  CHECK_FALSE(
      FileLock::acquire(scratch / "locks", 7, wye::Clock::steady().now() + std::chrono::milliseconds(5))
          .value());
  CHECK(FileLock::acquire(scratch / "locks", 8, {}).value());
  CHECK(FileLock::acquire(scratch / "locks", (1ull << 63) - 2, {}).value());
  std::thread other([&] {
    const auto waited = FileLock::acquire(scratch / "locks", 7, wye::Instant::max());
    CHECK((waited && *waited));
  });
  held->reset();
  other.join();
  CHECK(FileLock::acquire(scratch / "locks", 7, {}).value());
  CHECK(fs::file_size(scratch / "locks") == 0);
  CHECK(FileLock::acquire(scratch / "absent/locks", 7, {}).error() == wye::Errc::io);
}

TEST_CASE("a lock ends with its process, and with its holder even if a child has the file open", "[base]") {
  const Scratch scratch;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto held = FileLock::acquire(scratch / "locks", 7, {});
    const char said = held && *held ? 'y' : 'n';
    if (::write(ready[1], &said, 1) == 1) ::pause();
    ::_exit(1);
  }
  REQUIRE(holder > 0);
  char said = 0;
  REQUIRE(::read(ready[0], &said, 1) == 1);
  CHECK(said == 'y');
  CHECK_FALSE(FileLock::acquire(scratch / "locks", 7, {}).value());
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);

  auto held = FileLock::acquire(scratch / "locks", 7, {}).value();
  REQUIRE(held);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(1);
  }
  held.reset();
  CHECK(FileLock::acquire(scratch / "locks", 7, {}).value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("the parent keeps a lock when a child of fork destroys its copy", "[base]") {
  const Scratch scratch;
  auto held = FileLock::acquire(scratch / "locks", 7, {}).value();
  REQUIRE(held);
  const auto child = [&]() -> int {
    FileLock moved = std::move(*held);
    held.reset();
    return 0;
  };
  CHECK(wye::test::in_child(child) == wye::test::success);
  CHECK_FALSE(FileLock::acquire(scratch / "locks", 7, {}).value());
  held.reset();
  CHECK(FileLock::acquire(scratch / "locks", 7, {}).value());
}

TEST_CASE("a write beyond the limit of file sizes is an error and no signal ends the process", "[base]") {
  const Scratch scratch;
  const Content content(1000);
  const auto child = [&]() -> int {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit small{100, 100};
    WYE_CHILD_CHECK(1, ::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto written = write_file(scratch / "whole", content);
    WYE_CHILD_CHECK(2, !written && written.error().native()->number == EFBIG);
    auto pieces = RandomFile::open(scratch / "pieces", RandomFile::For::writing);
    WYE_CHILD_CHECK(3, pieces.has_value());
    const auto piece = pieces->write(0, content);
    WYE_CHILD_CHECK(4, !piece && piece.error().native()->number == EFBIG);
    // The thread's signal mask is unchanged, and the application's signals arrive.
    sigset_t now, pending;
    WYE_CHILD_CHECK(5, ::pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0 && sigismember(&now, SIGXFSZ) == 0);
    WYE_CHILD_CHECK(6, ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    ::raise(SIGXFSZ);
    (void)write_file(scratch / "whole", content).has_value();
    WYE_CHILD_CHECK(7, ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1);
    return 0;
  };
  CHECK(wye::test::in_child(child) == wye::test::success);
  CHECK(wye::base::list_directory(scratch / "").value() == std::vector<std::string>{"pieces"});
}

TEST_CASE("a log line to a pipe without a reader does not end the process", "[base]") {
  const auto child = []() -> int {
    int ends[2];
    WYE_CHILD_CHECK(1, ::pipe(ends) == 0);
    ::signal(SIGPIPE, SIG_DFL);
    ::close(ends[0]);
    ::dup2(ends[1], 2);
    wye::log_to_stderr()({wye::LogLevel::error, "base", "a line"});
    return 0;
  };
  CHECK(wye::test::in_child(child) == wye::test::success);
}

TEST_CASE("the library knows the program it is linked into", "[base]") {
  CHECK(fs::path(own_path()).filename() == "wye_base_tests");
}
