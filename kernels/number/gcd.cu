// Euclid's algorithm: threads leave the loop at different times.
extern "C" __global__ void gcd(const unsigned* a, const unsigned* b, unsigned* c)
{
    unsigned x = a[threadIdx.x];
    unsigned y = b[threadIdx.x];
    #pragma unroll 1
    while (y != 0) {
        unsigned r = x % y;
        x = y;
        y = r;
    }
    c[threadIdx.x] = x;
}
