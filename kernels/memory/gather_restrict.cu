// Gather: with const and __restrict__ the compiler uses the read-only load.
extern "C" __global__ void gather_restrict(const int* __restrict__ index, const int* __restrict__ table, int* __restrict__ y)
{
    y[threadIdx.x] = table[index[threadIdx.x]];
}
