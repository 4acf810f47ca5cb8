// Three dimensions everywhere: flatten the block index and the thread index.
extern "C" __global__ void block_3d(int* y)
{
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int size = blockDim.x * blockDim.y * blockDim.z;
    y[block * size + thread] = threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x + blockIdx.z * 1000 + gridDim.z * 10000;
}
