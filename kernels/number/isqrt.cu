// Integer square root by the digit method in base 4: sixteen steps at most.
extern "C" __global__ void isqrt(const unsigned* x, unsigned* root)
{
    unsigned v = x[threadIdx.x];
    unsigned r = 0;
    #pragma unroll 1
    for (unsigned bit = 1u << 30; bit != 0; bit >>= 2) {
        if (v >= r + bit) {
            v -= r + bit;
            r = (r >> 1) + bit;
        } else {
            r >>= 1;
        }
    }
    root[threadIdx.x] = r;
}
