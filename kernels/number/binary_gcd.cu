// Stein's binary gcd: no division, only counting trailing zeros, shifts and subtractions.
extern "C" __global__ void binary_gcd(const unsigned* a, const unsigned* b, unsigned* c)
{
    unsigned x = a[threadIdx.x];
    unsigned y = b[threadIdx.x];
    int twos = __ffs(x | y) - 1;
    x >>= __ffs(x) - 1;
    #pragma unroll 1
    while (y != 0) {
        y >>= __ffs(y) - 1;
        unsigned low = min(x, y);
        y = max(x, y) - low;
        x = low;
    }
    c[threadIdx.x] = x << twos;
}
