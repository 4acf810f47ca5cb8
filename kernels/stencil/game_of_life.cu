// One generation of the Game of Life on a torus: count eight neighbours, apply the rule.
extern "C" __global__ void game_of_life(const unsigned char* cells, unsigned char* after)
{
    int x = threadIdx.x;
    int y = threadIdx.y;
    int count = 0;
    #pragma unroll 1
    for (int dy = -1; dy <= 1; ++dy) {
        int row = ((y + dy) & 7) * 8;
        count += cells[row + ((x - 1) & 7)] + cells[row + x] + cells[row + ((x + 1) & 7)];
    }
    int alive = cells[y * 8 + x];
    after[y * 8 + x] = count == 3 || (alive && count == 4);
}
