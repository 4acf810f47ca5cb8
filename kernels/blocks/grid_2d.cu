// A 2D grid of 2D blocks: 3 by 2 blocks of 4 by 2 threads cover a board of 12 by 4 cells.
extern "C" __global__ void grid_2d(int* board)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int width = gridDim.x * blockDim.x;
    board[y * width + x] = ((x + y) & 1) ? -1 : y * 100 + x;
}
