// The trace: only the diagonal is read, and an atomic adds it up.
extern "C" __global__ void trace(const int* m, int n, int* sum)
{
    int i = threadIdx.x;
    atomicAdd(sum, m[i * n + i]);
}
