// Transpose through shared memory: both global accesses run along rows.
// The fifth column of the tile keeps the threads of a column in different banks.
extern "C" __global__ void transpose_shared(const int* a, int* b)
{
    __shared__ int tile[4][5];
    int x = threadIdx.x;
    int y = threadIdx.y;
    tile[y][x] = a[(blockIdx.y * 4 + y) * 8 + blockIdx.x * 4 + x];
    __syncthreads();
    b[(blockIdx.x * 4 + y) * 8 + blockIdx.y * 4 + x] = tile[x][y];
}
