/* SPDX-License-Identifier: Apache-2.0
 *
 * tileglu: the gated projection of an LLM's MLP as one kernel.
 *
 *     gate[m,n] = sum_k A[m,k] * Wgate[n,k]  [+ bias_gate[n] + add_gate[m,n]]
 *     up[m,n]   = sum_k A[m,k] * Wup[n,k]    [+ bias_up[n]   + add_up[m,n]]
 *     Y[m,n]    = act(gate[m,n]) * up[m,n]
 *
 * This header is the only installed contract. It is C11 and needs nothing but the C standard library.
 *
 * Terms:  m tokens (rows of A and Y), n output columns (intermediate size; the weights have n gate rows and n up rows),
 * k depth (hidden size). All matrices are row-major; a stride (ld...) is the distance between rows in ELEMENTS.
 *
 * Use:  describe the problem once, plan it (cheap), run it as often as wanted.
 *
 *     tileglu_problem p = TILEGLU_PROBLEM_INIT;
 *     p.dtype = TILEGLU_BF16; p.activation = TILEGLU_SILU; p.layout = TILEGLU_SEPARATE; p.memory = TILEGLU_MEMORY_CUDA;
 *     p.m = tokens; p.n = intermediate; p.k = hidden;
 *     tileglu_plan* plan;
 *     if (tileglu_plan_create(&p, NULL, &plan) != TILEGLU_OK) { puts(tileglu_last_error()); ... }
 *     tileglu_args a = TILEGLU_ARGS_INIT;
 *     a.a = A; a.gate = Wgate; a.up = Wup; a.y = Y; a.stream = stream;
 *     tileglu_plan_run(plan, &a);
 *
 * Rules of the call: a plan is immutable and may be run by many threads at once. A run does not allocate, synchronise,
 * log, read the environment or throw; it uses only the stream it is given and can be captured in a CUDA graph. A
 * refusal comes before any launch, leaves Y untouched, and tileglu_last_error() says which value broke which rule. m =
 * 0 or n = 0 succeeds and launches nothing; with k = 0 the sums are 0.
 *
 * NaN and infinities follow the formulas by IEEE rules, alike on every backend: a NaN reaches its own row only; silu,
 * gelu and swiglu of -inf are -inf * 0 = NaN; no clamp drops a NaN; fp16 results beyond 65504 are infinite.
 *
 * Every struct starts with struct_size, set by its INIT macro; fields are only ever added at the end, and a caller
 * built with a shorter struct means 0 in them. */
#ifndef TILEGLU_TILEGLU_H
#define TILEGLU_TILEGLU_H

#include <stddef.h>
#include <stdint.h>

#if defined(TILEGLU_STATIC)
#define TILEGLU_API
#else
#define TILEGLU_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TILEGLU_VERSION_MAJOR 0
#define TILEGLU_VERSION_MINOR 1
#define TILEGLU_VERSION_PATCH 0
#define TILEGLU_VERSION (TILEGLU_VERSION_MAJOR * 10000 + TILEGLU_VERSION_MINOR * 100 + TILEGLU_VERSION_PATCH)

typedef enum tileglu_status {
  TILEGLU_OK = 0,
  TILEGLU_INVALID_ARGUMENT = 1,    /* a value is outside its rule; nothing could ever run it */
  TILEGLU_NOT_SUPPORTED = 2,       /* a right problem that no (or the named) backend or kernel here implements */
  TILEGLU_NOT_AVAILABLE = 3,       /* the named or needed device or backend is missing on this machine */
  TILEGLU_WORKSPACE_TOO_SMALL = 4, /* workspace is NULL or shorter than tileglu_plan_workspace says */
  TILEGLU_CUDA_ERROR = 5,          /* the CUDA runtime, driver or cuBLASLt reported an error */
  TILEGLU_OUT_OF_MEMORY = 6,
  TILEGLU_INTERNAL_ERROR = 7 /* a bug in tileglu; please report the text */
} tileglu_status;

/* Enumerations start at 1, so that a forgotten field is refused instead of guessed. */
typedef enum tileglu_dtype { TILEGLU_BF16 = 1, TILEGLU_FP16 = 2, TILEGLU_FP32 = 3 } tileglu_dtype;

typedef enum tileglu_activation {
  TILEGLU_SILU = 1,      /* g / (1 + exp(-g))                                  SwiGLU: Qwen, Llama, Mistral, Phi */
  TILEGLU_GELU_TANH = 2, /* 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3)))    GeGLU:  Gemma */
  TILEGLU_GELU_ERF = 3,  /* 0.5 g (1 + erf(g / sqrt(2))) */
  TILEGLU_RELU = 4,      /* max(g, 0)                                          ReGLU */
  TILEGLU_SIGMOID = 5,   /* 1 / (1 + exp(-g))                                  GLU */
  TILEGLU_IDENTITY = 6,  /* g                                                  bilinear */
  /* g' sigmoid(alpha g') * (u' + up_offset) in place of act(g) * u, with g' = min(g, limit) and u' = u clamped to
   * -limit..limit: gpt-oss and its kin (alpha 1.702, limit 7, up_offset 1 in the model code of Transformers). */
  TILEGLU_SWIGLU = 7
} tileglu_activation;

/* Where results are rounded on the way from the fp32 sums to Y. Kernels that are only taken when named and that stand
 * for what others do round their own way: `merged` and `two_gemms` of backend cublas round gate and up to dtype and
 * nothing else before Y; `two_gemms_silu_mul` (cublas) and `two_gemms_act_mul` (cpu) round as UNFUSED. */
typedef enum tileglu_rounding {
  TILEGLU_ROUND_ONCE = 1, /* fp32 throughout, one rounding: Y */
  /* As frameworks do it, each step rounded to the type of Y: gate, up, act(gate), the product. For SWIGLU: gate, up,
   * g', alpha g', its sigmoid, g' times that, u' + up_offset, the product. What is rounded are fp32 sums; their order
   * is the kernel's. */
  TILEGLU_ROUND_UNFUSED = 2
} tileglu_rounding;

/* Bits of tileglu_problem.operands: what a run reads or writes besides A, the weights and Y. All of type `dtype`;
 * bases need only the alignment of an element. */
typedef enum tileglu_operand {
  TILEGLU_BIAS_GATE = 1, /* bias_gate [n], added to every row of gate */
  TILEGLU_BIAS_UP = 2,   /* bias_up [n] */
  TILEGLU_ADDEND = 4,    /* add_gate and add_up, [m,n] each (LoRA): added after the biases */
  /* pre_gate and pre_up, [m,n] each, are written: gate and up before clamp and activation, rounded to dtype. */
  TILEGLU_PREACTIVATIONS = 8
} tileglu_operand;

/* How the 2n weight rows of length k lie in memory. In every layout but SEPARATE there is one matrix of 2n rows with
 * base `gate` and row stride `ld_gate`; `up` must be NULL and `ld_up` 0. */
typedef enum tileglu_layout {
  TILEGLU_SEPARATE = 1,      /* gate row i at gate + i*ld_gate, up row i at up + i*ld_up */
  TILEGLU_GATE_UP = 2,       /* merged, gate rows 0..n-1 first (gate_up_proj of Phi-3, vLLM, SGLang) */
  TILEGLU_UP_GATE = 3,       /* merged, up rows first */
  TILEGLU_INTERLEAVED_1 = 4, /* row 2i is gate row i, row 2i+1 is up row i (the paper, gpt-oss) */
  TILEGLU_INTERLEAVED_8 = 5  /* 8 gate rows, 8 up rows, 8 gate rows, ...; n must be a multiple of 8 */
} tileglu_layout;

/* Where A, the weights and Y lie (all in the same place). It decides the backend; nothing is ever copied in secret. */
typedef enum tileglu_memory { TILEGLU_MEMORY_HOST = 1, TILEGLU_MEMORY_CUDA = 2 } tileglu_memory;

typedef enum tileglu_backend {
  TILEGLU_BACKEND_AUTO = 0,
  TILEGLU_BACKEND_SM90 = 1,   /* one fused kernel, Hopper (compute capability 9.0) */
  TILEGLU_BACKEND_CUBLAS = 2, /* cuBLASLt and an activation kernel, NVIDIA GPUs from compute capability 8.0 */
  TILEGLU_BACKEND_CPU = 3     /* oneDNN, column block by column block */
} tileglu_backend;

typedef struct tileglu_problem {
  uint32_t struct_size;
  int32_t dtype;      /* tileglu_dtype of A and of the weights; accumulation is fp32 */
  int32_t dtype_y;    /* tileglu_dtype of Y; 0: as dtype. Rounded once, at the end */
  int32_t activation; /* tileglu_activation */
  int32_t layout;     /* tileglu_layout */
  int32_t memory;     /* tileglu_memory */
  int32_t device;     /* CUDA ordinal of the operands; ignored for host memory */
  int32_t alignment;  /* bytes that every base address (a, gate, up, y) is a multiple of; 0: 16 */
  int64_t m, n, k;    /* each >= 0 */
  int64_t lda;        /* row strides in elements; 0: contiguous (k, k, k, n). Never below the row length */
  int64_t ld_gate;
  int64_t ld_up;
  int64_t ldy;
  /* Added later (see struct_size). The three numbers are finite, and 0 unless activation is SWIGLU. */
  float alpha; /* 0: 1 */
  float limit; /* >= 0; 0: none */
  float up_offset;
  int32_t rounding;   /* tileglu_rounding; 0: ONCE */
  uint32_t operands;  /* tileglu_operand, or-ed */
  int32_t layout_add; /* tileglu_layout of the 2n COLUMNS of the addend; 0: GATE_UP. Only with its bit, else 0 */
  int32_t layout_pre; /* the same of the pre-activations. SEPARATE: two matrices [m,n]; else one [m,2n], whose base is
                         the pointer of gate: column 2i is gate column i in INTERLEAVED_1, and so on */
  int32_t reserved;   /* 0 */
  int64_t ld_add;     /* row strides in elements (of both matrices if SEPARATE); 0: contiguous (n, or 2n) */
  int64_t ld_pre;
} tileglu_problem;
#define TILEGLU_PROBLEM_INIT \
  { sizeof(tileglu_problem), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Bits of tileglu_options.flags. */
typedef enum tileglu_flag {
  /* The kernel may read the weights before the kernel ahead of it in the stream has ended (programmatic dependent
   * launch on Hopper; ignored elsewhere). For weights that no kernel in flight writes, as in inference. */
  TILEGLU_PREFETCH_WEIGHTS = 1,
  /* The bits of a row of Y do not depend on m, on the other rows, or on the kernel that is chosen. Only backend sm90
   * can; the others refuse. Costs the split of tiles along k and shared reciprocals (docs/performance.md). */
  TILEGLU_BATCH_INVARIANT = 2
} tileglu_flag;

typedef struct tileglu_options {
  uint32_t struct_size;
  int32_t backend;    /* tileglu_backend; AUTO takes the first of sm90, cublas, cpu that can do the problem */
  const char* kernel; /* NULL or "": the planner's choice; else a kernel family ("interleave") or one configuration, as
                         tileglu_kernel_name() lists them */
  uint32_t flags;     /* tileglu_flag, or-ed */
  uint32_t reserved;  /* 0 */
} tileglu_options;
#define TILEGLU_OPTIONS_INIT \
  { sizeof(tileglu_options), 0, NULL, 0, 0 }

typedef struct tileglu_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* a;     /* [m,k] */
  const void* gate;  /* [n,k], or the whole matrix [2n,k] in every layout but SEPARATE */
  const void* up;    /* [n,k]; NULL in every layout but SEPARATE */
  void* y;           /* [m,n]; must not overlap another operand */
  void*
      workspace; /* tileglu_plan_workspace() bytes, 256-byte aligned, in the memory of the operands; may be NULL if 0 */
  size_t workspace_bytes;
  void* stream; /* cudaStream_t; ignored for host memory */
  /* Added later. Each is given exactly if its bit is in problem.operands. */
  const void* bias_gate; /* [n] */
  const void* bias_up;   /* [n] */
  const void* add_gate;  /* [m,n], or the whole matrix [m,2n] in every layout_add but SEPARATE */
  const void* add_up;    /* [m,n]; NULL in every layout_add but SEPARATE */
  void* pre_gate;        /* the same by layout_pre; written, so must not overlap another operand */
  void* pre_up;
} tileglu_args;
#define TILEGLU_ARGS_INIT \
  { sizeof(tileglu_args), 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

typedef struct tileglu_plan tileglu_plan;
typedef struct tileglu_handle tileglu_handle;

/* --- Library ------------------------------------------------------------------------------------------------------ */

TILEGLU_API int tileglu_version(void); /* TILEGLU_VERSION of the library that is loaded */
/* One line of text: version, commit, compiler, CUDA and CUTLASS versions or "none". */
TILEGLU_API const char* tileglu_build_info(void);
TILEGLU_API const char* tileglu_status_name(tileglu_status status);
/* Text of the last call of this thread that did not return TILEGLU_OK; valid until this thread's next such call. */
TILEGLU_API const char* tileglu_last_error(void);

/* Whether a backend can run on this machine at all. TILEGLU_OK or TILEGLU_NOT_AVAILABLE with the reason. */
TILEGLU_API tileglu_status tileglu_backend_available(tileglu_backend backend);
/* Kernel configurations of a backend that `options.kernel` accepts; NULL past the last one. */
TILEGLU_API const char* tileglu_kernel_name(tileglu_backend backend, int index);

/* --- Plan --------------------------------------------------------------------------------------------------------- */

/* Whether plan_create would succeed, and if not, why: up to `reason_size` bytes of text are written to `reason`
 * (always terminated; may be NULL). Needs no operands and launches nothing. */
TILEGLU_API tileglu_status tileglu_can_implement(const tileglu_problem* problem, const tileglu_options* options,
                                                 char* reason, size_t reason_size);
/* `options` may be NULL. On failure *plan is NULL. */
TILEGLU_API tileglu_status tileglu_plan_create(const tileglu_problem* problem, const tileglu_options* options,
                                               tileglu_plan** plan);
TILEGLU_API void tileglu_plan_destroy(tileglu_plan* plan); /* NULL is allowed */
/* Backend, kernel configuration, and why the backends and kernels before it were passed over. Lives as long as plan. */
TILEGLU_API const char* tileglu_plan_describe(const tileglu_plan* plan);
TILEGLU_API const char* tileglu_plan_backend(
    const tileglu_plan* plan); /* "sm90", "cublas", "cpu", or "none" (m*n = 0) */
TILEGLU_API const char* tileglu_plan_kernel(const tileglu_plan* plan);
TILEGLU_API size_t tileglu_plan_workspace(const tileglu_plan* plan);
TILEGLU_API tileglu_status tileglu_plan_run(const tileglu_plan* plan, const tileglu_args* args);

/* --- One call ----------------------------------------------------------------------------------------------------- */

/* A handle caches plans by problem and options; it may be used from many threads. */
TILEGLU_API tileglu_status tileglu_create(tileglu_handle** handle);
TILEGLU_API void tileglu_destroy(
    tileglu_handle* handle); /* no call of another thread may be using it; NULL is allowed */
/* Workspace that tileglu_run needs for this problem. */
TILEGLU_API tileglu_status tileglu_workspace(tileglu_handle* handle, const tileglu_problem* problem,
                                             const tileglu_options* options, size_t* bytes);
/* Plans on first use of a problem (which allocates), then only runs. */
TILEGLU_API tileglu_status tileglu_run(tileglu_handle* handle, const tileglu_problem* problem,
                                       const tileglu_options* options, const tileglu_args* args);

/* --- Weights ------------------------------------------------------------------------------------------------------ */

typedef struct tileglu_weights {
  uint32_t struct_size;
  int32_t layout; /* tileglu_layout */
  void* gate;     /* as in tileglu_args; only read for a source */
  void* up;
  int64_t ld_gate; /* 0: k */
  int64_t ld_up;
} tileglu_weights;
#define TILEGLU_WEIGHTS_INIT \
  { sizeof(tileglu_weights), 0, NULL, NULL, 0, 0 }

/* Copies 2n weight rows of length k from one layout to another, bit for bit: packing and unpacking are the same call.
 * Only dtype, memory, device, n and k are read from `problem`; source and destination must not overlap. On CUDA memory
 * the copy is enqueued on `stream`. */
TILEGLU_API tileglu_status tileglu_relayout(const tileglu_problem* problem, const tileglu_weights* source,
                                            const tileglu_weights* destination, void* stream);

#ifdef __cplusplus
}
#endif
#endif
