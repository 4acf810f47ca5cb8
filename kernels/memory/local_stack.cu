// A tiny stack machine per thread: positive numbers are pushed, -1 adds, -2 subtracts,
// -3 multiplies, 0 ends. The stack lives in local memory.
extern "C" __global__ void local_stack(const int* code, int* result)
{
    int stack[8];
    int top = 0;
    #pragma unroll 1
    for (int i = 0; i < 8; ++i) {
        int c = code[threadIdx.x * 8 + i];
        if (c == 0)
            break;
        if (c > 0) {
            stack[top++] = c;
        } else {
            int b = stack[--top];
            int a = stack[top - 1];
            stack[top - 1] = c == -1 ? a + b : c == -2 ? a - b : a * b;
        }
    }
    result[threadIdx.x] = stack[0];
}
