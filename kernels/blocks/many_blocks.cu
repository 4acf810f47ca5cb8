// Each thread packs its block, its place in the block and the grid's sizes into one number.
extern "C" __global__ void many_blocks(int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = blockIdx.x * 1000000 + threadIdx.x * 10000 + gridDim.x * 100 + blockDim.x;
}
