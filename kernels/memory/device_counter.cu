// A variable in global memory that belongs to the module, and a table beside it.
__device__ unsigned total_so_far = 1000;
__device__ int squares[4] = { 0, 1, 4, 9 };

extern "C" __global__ void device_counter(int* first, unsigned* total)
{
    int t = threadIdx.x;
    first[t] = squares[t & 3];
    atomicAdd(&total_so_far, (unsigned)t);
    __syncthreads();
    if (t == 0)
        *total = atomicAdd(&total_so_far, 0u);
}
