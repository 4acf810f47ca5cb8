// The first kernel everybody writes: one thread adds one pair of numbers.
// The guard keeps spare threads of the last block out of the arrays.
extern "C" __global__ void vector_add(const int* a, const int* b, int* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
