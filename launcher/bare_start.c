/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entry of sbx-init without a C library (bare.h): x86-64 Linux, position independent, static.
 *
 * The kernel maps the program somewhere and jumps to _start. What a C library does then and this
 * program needs is done here: its own relocations (of kind RELATIVE, there are no others: no symbols
 * are looked up, no functions are picked by the processor's features), the canary of the stack
 * protector at %fs:0x28, where the compiler looks for it, from the kernel's random bytes, and the
 * relocated constants made read-only (RELRO). Until that is done nothing else may run: these
 * functions are compiled without the stack protector and call nothing. One thread, no heap, no
 * locale, no atexit.
 */
#undef _FORTIFY_SOURCE
#include <asm/prctl.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/bare.h"

#define PAGE_SIZE 4096ul

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
int main(int argc, char **argv);

char **environ;

/* The thread control block, as far as x86-64 compilers know it. */
static struct {
	void *self;
	uintptr_t unused[4];
	uintptr_t canary;
} tcb __attribute__((aligned(64)));
_Static_assert(offsetof(__typeof__(tcb), canary) == 0x28, "where the compiler looks");

/* clang-format off */
__asm__(".text\n"
	".globl _start\n"
	".type _start, @function\n"
	".hidden _DYNAMIC\n"
	"_start:\n"
	"	endbr64\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	lea _DYNAMIC(%rip), %rsi\n"
	"	and $-16, %rsp\n"
	"	call sbx_bare_start\n"
	"	hlt\n"
	".size _start, . - _start\n");
/* clang-format on */

#define BEFORE_CANARY __attribute__((no_stack_protector)) static inline

BEFORE_CANARY long call3(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return r;
}

BEFORE_CANARY void check(int fine)
{
	if (!fine)
		__builtin_trap();
}

BEFORE_CANARY void relocate(uintptr_t base, const Elf64_Dyn *d)
{
	const Elf64_Rela *rela = NULL;
	size_t size = 0;

	for (; d->d_tag != DT_NULL; d++) {
		check(d->d_tag != DT_REL && d->d_tag != DT_JMPREL && d->d_tag != DT_NEEDED);
		if (d->d_tag == DT_RELA)
			rela = (const Elf64_Rela *)(base + d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			size = d->d_un.d_val;
	}
	check(rela || size == 0);
	for (; rela && size >= sizeof(*rela); size -= sizeof(*rela), rela++) {
		check(ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE);
		*(uintptr_t *)(base + rela->r_offset) = base + (uintptr_t)rela->r_addend;
	}
}

/* The first bytes of the kernel's random ones; a zero at the end, so that no string can copy it. */
BEFORE_CANARY void set_canary(const Elf64_auxv_t *aux)
{
	while (aux->a_type != AT_RANDOM && aux->a_type != AT_NULL)
		aux++;
	check(aux->a_type == AT_RANDOM);
	tcb.self = &tcb;
	tcb.canary = *(const uintptr_t *)aux->a_un.a_val & ~(uintptr_t)0xff;
	check(call3(SYS_arch_prctl, ARCH_SET_FS, (long)(uintptr_t)&tcb, 0) == 0);
}

BEFORE_CANARY void protect_relro(uintptr_t base)
{
	const Elf64_Phdr *p = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
		uintptr_t from = (base + p[i].p_vaddr) & ~(PAGE_SIZE - 1);
		uintptr_t to = (base + p[i].p_vaddr + p[i].p_memsz) & ~(PAGE_SIZE - 1);

		if (p[i].p_type == PT_GNU_RELRO && to > from)
			check(call3(SYS_mprotect, (long)from, (long)(to - from), PROT_READ) == 0);
	}
}

__attribute__((no_stack_protector)) void sbx_bare_start(uintptr_t *sp, const void *dynamic)
{
	const uintptr_t base = (uintptr_t)&__ehdr_start;
	const int argc = (int)sp[0];
	char **argv = (char **)(sp + 1), **envp = argv + argc + 1, **end = envp;

	while (*end)
		end++;
	relocate(base, dynamic);
	set_canary((const Elf64_auxv_t *)(end + 1));
	protect_relro(base);
	environ = envp;
	_exit(main(argc, argv));
}
