// Take decimal digits off the end until nothing is left.
extern "C" __global__ void digit_sum(const unsigned* x, unsigned* sum)
{
    unsigned v = x[threadIdx.x];
    unsigned s = 0;
    #pragma unroll 1
    while (v != 0) {
        s += v % 10;
        v /= 10;
    }
    sum[threadIdx.x] = s;
}
