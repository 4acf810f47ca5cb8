// Dynamic shared memory: the launch says how large the array is. Each block reverses its part.
extern "C" __global__ void dynamic_shared(int* x)
{
    extern __shared__ int s[];
    int t = threadIdx.x;
    int base = blockIdx.x * blockDim.x;
    s[t] = x[base + t];
    __syncthreads();
    x[base + t] = s[blockDim.x - 1 - t];
}
