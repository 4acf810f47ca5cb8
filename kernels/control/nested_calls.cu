// Calls inside calls: division by repeated subtraction, remainder handed back by pointer.
__device__ __noinline__ bool fits(unsigned part, unsigned whole)
{
    return part <= whole;
}

__device__ __noinline__ unsigned divide(unsigned a, unsigned b, unsigned* rest)
{
    unsigned q = 0;
    #pragma unroll 1
    for (unsigned chunk = b << 8; chunk >= b; chunk >>= 1) {
        q <<= 1;
        if (fits(chunk, a)) {
            a -= chunk;
            ++q;
        }
    }
    *rest = a;
    return q;
}

extern "C" __global__ void nested_calls(const unsigned* a, const unsigned* b, unsigned* q, unsigned* r)
{
    int t = threadIdx.x;
    unsigned rest;
    q[t] = divide(a[t], b[t], &rest);
    r[t] = rest;
}
