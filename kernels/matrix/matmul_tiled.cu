// Tiled matrix product: a block loads one tile of a and of b, multiplies, moves on.
// Each value is read from global memory once per tile instead of once per product.
#define N 8
#define TILE 4
extern "C" __global__ void matmul_tiled(const int* a, const int* b, int* c)
{
    __shared__ int ta[TILE][TILE];
    __shared__ int tb[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < N; k += TILE) {
        ta[y][x] = a[row * N + k + x];
        tb[y][x] = b[(k + y) * N + col];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE; ++i)
            sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    c[row * N + col] = sum;
}
