// Trial division by odd numbers; composite numbers leave at their first divisor.
extern "C" __global__ void is_prime(const unsigned* x, int* prime)
{
    unsigned v = x[threadIdx.x];
    int yes = v == 2 || (v > 2 && (v & 1));
    #pragma unroll 1
    for (unsigned d = 3; yes && d * d <= v; d += 2)
        if (v % d == 0)
            yes = 0;
    prime[threadIdx.x] = yes;
}
