// Word count as a two-state automaton over twelve characters.
extern "C" __global__ void state_machine(const unsigned char* text, int* words)
{
    int n = 0;
    bool inside = false;
    #pragma unroll 1
    for (int i = 0; i < 12; ++i) {
        bool letter = text[threadIdx.x * 12 + i] != ' ';
        if (letter && !inside)
            ++n;
        inside = letter;
    }
    words[threadIdx.x] = n;
}
