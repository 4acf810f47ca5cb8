// A stand-in for the GPU: enough of CUDA C to run the kernels of this folder on a CPU.
//
// Every thread of a block is a coroutine. It runs until a barrier, a warp instruction or an
// atomic, then another thread has its turn, in an order that the caller chooses: results that
// depend on the order of threads show up as differences between orders.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

struct uint3 { unsigned x, y, z; };
typedef uint3 dim3;
struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct ushort2 { unsigned short x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace native {

enum class State { ready, barrier, warp, active, done };

struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    uint3 index;
    State state;
    unsigned mask;          // of a warp instruction, or the answer of activemask
    void* site;             // of activemask
    uint64_t value;         // offered to the warp
    uint64_t seen[32];      // offered by the warp
};

inline std::vector<Thread> threads;
inline size_t running;
inline ucontext_t scheduler;
inline void (*body)(void*);
inline void* body_data;
alignas(16) inline char dynamic[4096];
inline const char* kernel_name = "";

[[noreturn]] inline void fail(const char* what)
{
    std::printf("%s: %s\n", kernel_name, what);
    std::exit(1);
}

inline unsigned lane() { return running % 32; }

inline void pause(State state)
{
    Thread& t = threads[running];
    t.state = state;
    swapcontext(&t.context, &scheduler);
}

inline void enter()
{
    body(body_data);
    pause(State::done);
}

// Wait for all lanes of the mask, then see what each of them offered.
inline const uint64_t* exchange(unsigned mask, uint64_t value)
{
    Thread& t = threads[running];
    if (!(mask >> lane() & 1))
        fail("a lane calls a warp instruction without being in its mask");
    t.mask = mask;
    t.value = value;
    pause(State::warp);
    return t.seen;
}

template <class T> T shuffle(unsigned mask, T value, unsigned from, bool own)
{
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    const uint64_t* seen = exchange(mask, bits);
    if (own)
        return value;
    if (from > 31 || !(mask >> from & 1))
        fail("a shuffle reads a lane outside its mask");
    std::memcpy(&value, &seen[from], sizeof value);
    return value;
}

// Let waiting threads go on; false if nobody can.
inline bool release()
{
    bool all = true, any = false;
    for (Thread& t : threads) {
        all = all && (t.state == State::barrier || t.state == State::done);
        any = any || t.state == State::barrier;
    }
    if (all) {
        for (Thread& t : threads)
            if (t.state == State::barrier)
                t.state = State::ready;
        return any;
    }
    for (size_t base = 0; base < threads.size(); base += 32) {
        size_t count = threads.size() - base < 32 ? threads.size() - base : 32;
        Thread* warp = &threads[base];
        for (size_t i = 0; i < count; ++i) {
            if (warp[i].state != State::warp)
                continue;
            unsigned mask = warp[i].mask, here = 0;
            for (size_t k = 0; k < count; ++k)
                if (warp[k].state == State::warp && warp[k].mask == mask)
                    here |= 1u << k;
            if (here != mask)
                continue;
            for (size_t k = 0; k < count; ++k)
                if (mask >> k & 1) {
                    for (size_t j = 0; j < count; ++j)
                        warp[k].seen[j] = warp[j].value;
                    warp[k].state = State::ready;
                }
            any = true;
        }
    }
    if (any)
        return true;
    // Nobody else can move: the lanes that ask at one place are the active ones.
    for (size_t base = 0; base < threads.size(); base += 32)
        for (size_t i = base; i < threads.size() && i < base + 32; ++i) {
            if (threads[i].state != State::active)
                continue;
            void* site = threads[i].site;
            unsigned mask = 0;
            for (size_t k = base; k < threads.size() && k < base + 32; ++k)
                if (threads[k].state == State::active && threads[k].site == site)
                    mask |= 1u << (k - base);
            for (size_t k = base; k < threads.size() && k < base + 32; ++k)
                if (mask >> (k - base) & 1) {
                    threads[k].mask = mask;
                    threads[k].state = State::ready;
                }
            return true;
        }
    return false;
}

// order 0: ascending, 1: descending, more: shuffled anew at each turn.
inline void run_block(unsigned order)
{
    size_t count = blockDim.x * blockDim.y * blockDim.z;
    threads = std::vector<Thread>(count);
    std::vector<size_t> turn(count);
    std::mt19937 random(order);
    for (size_t i = 0; i < count; ++i) {
        Thread& t = threads[i];
        t.stack.resize(1 << 15);
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data();
        t.context.uc_stack.ss_size = t.stack.size();
        t.context.uc_link = nullptr;
        makecontext(&t.context, enter, 0);
        t.index = {unsigned(i % blockDim.x), unsigned(i / blockDim.x % blockDim.y),
                   unsigned(i / blockDim.x / blockDim.y)};
        t.state = State::ready;
        turn[i] = order == 1 ? count - 1 - i : i;
    }
    for (;;) {
        if (order > 1)
            for (size_t i = count; i > 1; --i)
                std::swap(turn[i - 1], turn[random() % i]);
        bool ran = false, left = false;
        for (size_t i : turn) {
            if (threads[i].state == State::ready) {
                running = i;
                threadIdx = threads[i].index;
                swapcontext(&scheduler, &threads[i].context);
                ran = true;
            }
            left = left || threads[i].state != State::done;
        }
        if (!left)
            return;
        if (!ran && !release())
            fail("threads wait for each other for ever");
    }
}

// An argument: bytes with a margin on both sides that must stay as it is.
struct Buffer {
    static constexpr size_t margin = 64;
    std::vector<char> bytes;
    alignas(16) char* data;

    template <class T> explicit Buffer(std::vector<T> values)
    {
        size_t size = values.size() * sizeof(T);
        bytes.assign(size + 2 * margin + 16, 0x5a);
        data = bytes.data() + margin;
        data += (16 - reinterpret_cast<uintptr_t>(data) % 16) % 16;
        std::memcpy(data, values.data(), size);
    }
    Buffer(const Buffer&) = delete;
};

template <class T> void compare(const char* name, const Buffer& buffer, std::vector<T> wanted)
{
    const T* got = reinterpret_cast<const T*>(buffer.data);
    for (size_t i = 0; i < wanted.size(); ++i)
        if (got[i] != wanted[i]) {
            std::printf("%s: %s[%zu] is %s, expected %s\n", kernel_name, name, i,
                        std::to_string(got[i]).c_str(), std::to_string(wanted[i]).c_str());
            std::exit(1);
        }
    const char* end = buffer.data + wanted.size() * sizeof(T);
    for (const char* p = buffer.bytes.data(); p < buffer.bytes.data() + buffer.bytes.size(); ++p)
        if ((p < buffer.data || p >= end) && *p != 0x5a)
            fail((std::string("writes outside of ") + name).c_str());
}

template <class T> T parameter(const Buffer& buffer)
{
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<T>(const_cast<char*>(buffer.data));
    } else {
        T value;
        std::memcpy(&value, buffer.data, sizeof value);
        return value;
    }
}

template <class... P, class... B>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, unsigned order, const B&... buffers)
{
    auto call = [&] { kernel(parameter<P>(buffers)...); };
    body = [](void* data) { (*static_cast<decltype(call)*>(data))(); };
    body_data = &call;
    gridDim = grid;
    blockDim = block;
    size_t count = size_t(grid.x) * grid.y * grid.z;
    for (size_t k = 0; k < count; ++k) {
        size_t i = order == 1 ? count - 1 - k : k;
        blockIdx = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y),
                    unsigned(i / grid.x / grid.y)};
        std::memset(dynamic, 0x5a, sizeof dynamic);
        run_block(order);
    }
}

template <class T, class F> T atomic(T* at, F change)
{
    pause(State::ready);
    T old = *at;
    *at = change(old);
    return old;
}

template <class T> struct same { typedef T type; };
template <class T> using same_t = typename same<T>::type;

}  // namespace native

using native::same_t;

template <class T> T min(T a, same_t<T> b) { return b < a ? b : a; }
template <class T> T max(T a, same_t<T> b) { return a < b ? b : a; }

inline void __syncthreads() { native::pause(native::State::barrier); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { native::exchange(mask, 0); }
inline void __threadfence() {}

template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32)
{
    unsigned base = native::lane() & ~(width - 1);
    return native::shuffle(mask, v, base + (from & (width - 1)), false);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    unsigned place = native::lane() & (width - 1);
    return native::shuffle(mask, v, native::lane() - by, by > place);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    unsigned place = native::lane() & (width - 1);
    return native::shuffle(mask, v, native::lane() + by, place + by >= unsigned(width));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32)
{
    unsigned base = native::lane() & ~(width - 1), from = native::lane() ^ by;
    return native::shuffle(mask, v, from, from >= base + width);
}

inline unsigned __ballot_sync(unsigned mask, int answer)
{
    const uint64_t* seen = native::exchange(mask, answer != 0);
    unsigned votes = 0;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1)
            votes |= unsigned(seen[i]) << i;
    return votes;
}
inline int __any_sync(unsigned mask, int answer) { return __ballot_sync(mask, answer) != 0; }
inline int __all_sync(unsigned mask, int answer) { return __ballot_sync(mask, answer) == mask; }
__attribute__((noinline)) inline unsigned __activemask()
{
    native::Thread& t = native::threads[native::running];
    t.site = __builtin_return_address(0);
    native::pause(native::State::active);
    return t.mask;
}

template <class T> T atomicAdd(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return T(o + v); }); }
template <class T> T atomicSub(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return T(o - v); }); }
template <class T> T atomicMin(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return min(o, v); }); }
template <class T> T atomicMax(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return max(o, v); }); }
template <class T> T atomicAnd(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return o & v; }); }
template <class T> T atomicOr(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return o | v; }); }
template <class T> T atomicXor(T* p, same_t<T> v) { return native::atomic(p, [=](T o) { return o ^ v; }); }
template <class T> T atomicExch(T* p, same_t<T> v) { return native::atomic(p, [=](T) { return v; }); }
template <class T> T atomicCAS(T* p, same_t<T> c, same_t<T> v) { return native::atomic(p, [=](T o) { return o == c ? v : o; }); }
inline unsigned atomicInc(unsigned* p, unsigned top)
{
    return native::atomic(p, [=](unsigned o) { return o >= top ? 0 : o + 1; });
}
inline unsigned atomicDec(unsigned* p, unsigned top)
{
    return native::atomic(p, [=](unsigned o) { return o == 0 || o > top ? top : o - 1; });
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(uint64_t v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned long long __brevll(unsigned long long v)
{
    unsigned long long r = 0;
    for (int i = 0; i < 64; ++i)
        r = r << 1 | (v >> i & 1);
    return r;
}
inline unsigned __brev(unsigned v) { return __brevll(v) >> 32; }
inline int __mulhi(int a, int b) { return int64_t(a) * b >> 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return uint64_t(a) * b >> 32; }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by)
{
    return (uint64_t(high) << 32 | low) << (by & 31) >> 32;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by)
{
    return (uint64_t(high) << 32 | low) >> (by & 31);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    uint64_t pair = uint64_t(b) << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i)
        r |= unsigned(pair >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return r;
}

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static const
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline
