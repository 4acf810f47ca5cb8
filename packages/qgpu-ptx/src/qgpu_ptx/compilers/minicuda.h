// What CUDA's headers give to integer kernels, for a clang that has no CUDA toolkit.
// __syncthreads is a builtin of clang's CUDA mode.
#pragma once

typedef __SIZE_TYPE__ size_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define QGPU_DEVICE static __device__ __forceinline__

struct qgpu_tid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ unsigned get_x() const { return __nvvm_read_ptx_sreg_tid_x(); }
    __device__ unsigned get_y() const { return __nvvm_read_ptx_sreg_tid_y(); }
    __device__ unsigned get_z() const { return __nvvm_read_ptx_sreg_tid_z(); }
};
struct qgpu_ntid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ unsigned get_x() const { return __nvvm_read_ptx_sreg_ntid_x(); }
    __device__ unsigned get_y() const { return __nvvm_read_ptx_sreg_ntid_y(); }
    __device__ unsigned get_z() const { return __nvvm_read_ptx_sreg_ntid_z(); }
};
struct qgpu_ctaid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ unsigned get_x() const { return __nvvm_read_ptx_sreg_ctaid_x(); }
    __device__ unsigned get_y() const { return __nvvm_read_ptx_sreg_ctaid_y(); }
    __device__ unsigned get_z() const { return __nvvm_read_ptx_sreg_ctaid_z(); }
};
struct qgpu_nctaid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ unsigned get_x() const { return __nvvm_read_ptx_sreg_nctaid_x(); }
    __device__ unsigned get_y() const { return __nvvm_read_ptx_sreg_nctaid_y(); }
    __device__ unsigned get_z() const { return __nvvm_read_ptx_sreg_nctaid_z(); }
};
extern const __device__ __attribute__((weak)) qgpu_tid threadIdx;
extern const __device__ __attribute__((weak)) qgpu_ntid blockDim;
extern const __device__ __attribute__((weak)) qgpu_ctaid blockIdx;
extern const __device__ __attribute__((weak)) qgpu_nctaid gridDim;
#define warpSize 32

struct dim3 {
    unsigned x, y, z;
    __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Vectors of two and four, aligned to their size (at most 16) so that they load in one access.
#define QGPU_VECTOR(T, NAME, ALIGN2, ALIGN4)                                                      \
    struct __attribute__((aligned(ALIGN2))) NAME##2 { T x, y; };                                  \
    struct NAME##3 { T x, y, z; };                                                                \
    struct __attribute__((aligned(ALIGN4))) NAME##4 { T x, y, z, w; };                            \
    QGPU_DEVICE NAME##2 make_##NAME##2(T x, T y) { NAME##2 v = {x, y}; return v; }                \
    QGPU_DEVICE NAME##3 make_##NAME##3(T x, T y, T z) { NAME##3 v = {x, y, z}; return v; }        \
    QGPU_DEVICE NAME##4 make_##NAME##4(T x, T y, T z, T w) { NAME##4 v = {x, y, z, w}; return v; }
QGPU_VECTOR(signed char, char, 2, 4)
QGPU_VECTOR(unsigned char, uchar, 2, 4)
QGPU_VECTOR(short, short, 4, 8)
QGPU_VECTOR(unsigned short, ushort, 4, 8)
QGPU_VECTOR(int, int, 8, 16)
QGPU_VECTOR(unsigned, uint, 8, 16)
QGPU_VECTOR(long long, longlong, 16, 16)
QGPU_VECTOR(unsigned long long, ulonglong, 16, 16)

QGPU_DEVICE int min(int a, int b) { return a < b ? a : b; }
QGPU_DEVICE int max(int a, int b) { return a > b ? a : b; }
QGPU_DEVICE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
QGPU_DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
QGPU_DEVICE long long min(long long a, long long b) { return a < b ? a : b; }
QGPU_DEVICE long long max(long long a, long long b) { return a > b ? a : b; }
QGPU_DEVICE unsigned long long min(unsigned long long a, unsigned long long b) {
    return a < b ? a : b;
}
QGPU_DEVICE unsigned long long max(unsigned long long a, unsigned long long b) {
    return a > b ? a : b;
}
QGPU_DEVICE unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
QGPU_DEVICE unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
QGPU_DEVICE long long llmin(long long a, long long b) { return a < b ? a : b; }
QGPU_DEVICE long long llmax(long long a, long long b) { return a > b ? a : b; }
QGPU_DEVICE int abs(int a) { return a < 0 ? -a : a; }
QGPU_DEVICE long long llabs(long long a) { return a < 0 ? -a : a; }
QGPU_DEVICE int __popc(unsigned a) { return __builtin_popcount(a); }
QGPU_DEVICE int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
QGPU_DEVICE int __clz(unsigned a) { return a ? __builtin_clz(a) : 32; }
QGPU_DEVICE int __clzll(unsigned long long a) { return a ? __builtin_clzll(a) : 64; }
QGPU_DEVICE int __ffs(unsigned a) { return __builtin_ffs(a); }
QGPU_DEVICE int __ffsll(unsigned long long a) { return __builtin_ffsll(a); }
QGPU_DEVICE unsigned __brev(unsigned a) { return __builtin_bitreverse32(a); }
QGPU_DEVICE unsigned long long __brevll(unsigned long long a) { return __builtin_bitreverse64(a); }
QGPU_DEVICE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
QGPU_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a * b) >> 32);
}
QGPU_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    unsigned r;
    // CUDA reads three bits of each selector; prmt would take the fourth as "spread the sign".
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(s & 0x7777u));
    return r;
}
QGPU_DEVICE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    unsigned r;
    __asm__("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
    return r;
}
QGPU_DEVICE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    unsigned r;
    __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
    return r;
}

QGPU_DEVICE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) {
    unsigned r;
    __asm__("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
    return r;
}
QGPU_DEVICE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) {
    unsigned r;
    __asm__("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
    return r;
}
QGPU_DEVICE long long __mul64hi(long long a, long long b) {
    long long r;
    __asm__("mul.hi.s64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));
    return r;
}
QGPU_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    unsigned long long r;
    __asm__("mul.hi.u64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));
    return r;
}
QGPU_DEVICE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
QGPU_DEVICE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
QGPU_DEVICE unsigned __sad(int a, int b, unsigned c) {
    unsigned r;
    __asm__("sad.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
QGPU_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a > b ? a - b : b - a) + c;
}
QGPU_DEVICE int __dp4a(int a, int b, int c) {
    int r;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
template <typename T> QGPU_DEVICE T __ldg(const T *p) { return *p; }
QGPU_DEVICE long long clock64() {
    long long r;
    __asm__ volatile("mov.u64 %0, %%clock64;" : "=l"(r));
    return r;
}
QGPU_DEVICE int clock() { return (int)clock64(); }
QGPU_DEVICE void __trap() { __asm__ volatile("trap;"); }
QGPU_DEVICE void __nanosleep(unsigned t) { __asm__ volatile("nanosleep.u32 %0;" : : "r"(t)); }

#define QGPU_FULL_MASK 0xffffffffu
// 64-bit values move as two halves.
#define QGPU_SHUFFLE(NAME, MODE, OFFSET, CLAMP)                                                   \
    QGPU_DEVICE unsigned qgpu##NAME(unsigned mask, unsigned value, unsigned by, int width) {      \
        unsigned r, c = ((32u - (unsigned)width) << 8) | CLAMP;                                   \
        __asm__ volatile("shfl.sync." MODE ".b32 %0, %1, %2, %3, %4;"                             \
                         : "=r"(r) : "r"(value), "r"(by), "r"(c), "r"(mask));                     \
        return r;                                                                                 \
    }                                                                                             \
    template <typename T>                                                                         \
    QGPU_DEVICE T NAME(unsigned mask, T value, OFFSET by, int width = 32) {                       \
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 32 or 64 bits");           \
        unsigned low = qgpu##NAME(mask, (unsigned)value, (unsigned)by, width);                    \
        if (sizeof(T) == 4) return (T)low;                                                        \
        unsigned upper = (unsigned)((unsigned long long)value >> 32);                             \
        upper = qgpu##NAME(mask, upper, (unsigned)by, width);                                     \
        return (T)((unsigned long long)upper << 32 | low);                                        \
    }
QGPU_SHUFFLE(__shfl_sync, "idx", int, 31u)
QGPU_SHUFFLE(__shfl_up_sync, "up", unsigned, 0u)
QGPU_SHUFFLE(__shfl_down_sync, "down", unsigned, 31u)
QGPU_SHUFFLE(__shfl_xor_sync, "bfly", int, 31u)

QGPU_DEVICE unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
QGPU_DEVICE int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
QGPU_DEVICE int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
QGPU_DEVICE unsigned __match_any_sync(unsigned mask, unsigned value) {
    unsigned r;
    __asm__ volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
    return r;
}
QGPU_DEVICE unsigned __match_all_sync(unsigned mask, unsigned value, int *same) {
    unsigned r;
    __asm__ volatile("match.all.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
    *same = r != 0;
    return r;
}
QGPU_DEVICE unsigned __activemask() {
    unsigned r;
    __asm__ volatile("activemask.b32 %0;" : "=r"(r));
    return r;
}
QGPU_DEVICE void __syncwarp(unsigned mask = QGPU_FULL_MASK) { __nvvm_bar_warp_sync(mask); }
QGPU_DEVICE int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
QGPU_DEVICE int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
QGPU_DEVICE int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
QGPU_DEVICE void __threadfence() { __nvvm_membar_gl(); }
QGPU_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }

#define QGPU_ATOMIC(T, BITS)                                                                      \
    QGPU_DEVICE T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }     \
    QGPU_DEVICE T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }     \
    QGPU_DEVICE T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }       \
    QGPU_DEVICE T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }     \
    QGPU_DEVICE T atomicMin(T *p, T v) { return __atomic_fetch_min(p, v, __ATOMIC_RELAXED); }     \
    QGPU_DEVICE T atomicMax(T *p, T v) { return __atomic_fetch_max(p, v, __ATOMIC_RELAXED); }     \
    QGPU_DEVICE T atomicExch(T *p, T v) {                                                         \
        T r;                                                                                      \
        __asm__ volatile("atom.exch.b" #BITS " %0, [%1], %2;"                                     \
                         : QGPU_OUT_##BITS(r) : "l"(p), QGPU_IN_##BITS(v) : "memory");            \
        return r;                                                                                 \
    }                                                                                             \
    QGPU_DEVICE T atomicCAS(T *p, T c, T v) {                                                     \
        T r;                                                                                      \
        __asm__ volatile("atom.cas.b" #BITS " %0, [%1], %2, %3;"                                  \
                         : QGPU_OUT_##BITS(r)                                                     \
                         : "l"(p), QGPU_IN_##BITS(c), QGPU_IN_##BITS(v) : "memory");              \
        return r;                                                                                 \
    }
#define QGPU_OUT_32(x) "=r"(x)
#define QGPU_IN_32(x) "r"(x)
#define QGPU_OUT_64(x) "=l"(x)
#define QGPU_IN_64(x) "l"(x)
QGPU_ATOMIC(int, 32)
QGPU_ATOMIC(unsigned, 32)
QGPU_ATOMIC(unsigned long long, 64)
QGPU_DEVICE int atomicSub(int *p, int v) { return atomicAdd(p, -v); }
QGPU_DEVICE unsigned atomicSub(unsigned *p, unsigned v) { return atomicAdd(p, 0u - v); }
QGPU_DEVICE unsigned atomicInc(unsigned *p, unsigned limit) {
    unsigned r;
    __asm__ volatile("atom.inc.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(limit) : "memory");
    return r;
}
QGPU_DEVICE unsigned atomicDec(unsigned *p, unsigned limit) {
    unsigned r;
    __asm__ volatile("atom.dec.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(limit) : "memory");
    return r;
}
