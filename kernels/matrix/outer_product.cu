// Outer product: thread (x, y) writes u[y] * v[x].
extern "C" __global__ void outer_product(const int* u, const int* v, int* m)
{
    m[threadIdx.y * blockDim.x + threadIdx.x] = u[threadIdx.y] * v[threadIdx.x];
}
