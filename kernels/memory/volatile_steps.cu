// Volatile: each read and write below reaches memory, though one would be enough.
extern "C" __global__ void volatile_steps(volatile int* x)
{
    int t = threadIdx.x;
    x[t] = x[t] + 1;
    x[t] = x[t] * x[t];
}
