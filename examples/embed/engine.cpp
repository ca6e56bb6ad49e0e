// engine: the same as engine.c, as a C++ program would hold it: owners that close what they opened, spans of memory
// that the program has anyway.
//
//   c++ -std=c++17 engine.cpp $(pkg-config --cflags --libs fpa-run) -o engine
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fpa.h>

#include "model_file.h"

namespace
{

constexpr std::int64_t heads = 2, prompt = 200, reply = 8, sequences = 2;

void check(fpa_status status, const fpa_error &error)
{
    if (status != FPA_OK)
        throw std::runtime_error(std::string(error.where) + ": " + error.message);
}

// A view: the tensor's shape lives beside it, its numbers belong to somebody else.
class view
{
  public:
    view(const float *data, std::vector<std::int64_t> shape) : shape_(std::move(shape))
    {
        tensor_.data = const_cast<float *>(data);
        tensor_.device = {kDLCPU, 0};
        tensor_.dtype = {kDLFloat, 32, 1};
        tensor_.ndim = static_cast<int>(shape_.size());
        tensor_.shape = shape_.data();
    }
    view(const view &) = delete;
    view &operator=(const view &) = delete;
    DLTensor *get()
    {
        return &tensor_;
    }

  private:
    std::vector<std::int64_t> shape_;
    DLTensor tensor_{};
};

class mapped_model
{
  public:
    explicit mapped_model(const char *path)
    {
        if (model_open(path, &file_) != 0)
            throw std::runtime_error(std::string(path) + ": is no file of weights");
    }
    ~mapped_model()
    {
        model_close(&file_);
    }
    mapped_model(const mapped_model &) = delete;
    mapped_model &operator=(const mapped_model &) = delete;

    std::unique_ptr<view> find(const char *name) const
    {
        const model_entry *entry = model_find(&file_, name);
        if (entry == nullptr)
            throw std::runtime_error(std::string(name) + ": is a matrix that the model lacks");
        const void *numbers = file_.bytes + entry->offset;
        return std::make_unique<view>(static_cast<const float *>(numbers),
                                      std::vector<std::int64_t>(entry->shape, entry->shape + entry->axes));
    }

  private:
    model_file file_{};
};

struct close_kernel {
    void operator()(fpa_kernel *kernel) const
    {
        fpa_close(kernel);
    }
};

struct free_memory {
    void operator()(void *memory) const
    {
        std::free(memory);
    }
};

// All that is remembered of a conversation.
struct sequence {
    std::vector<float> state;
    std::int64_t tokens = 0;
};

// What a model's layer computes of its tokens: [1, tokens, heads, width].
struct activations {
    std::int64_t tokens;
    std::vector<float> q, k, v, o;
};

class engine
{
  public:
    engine(const char *bundle, const char *head, const char *model) : model_(model)
    {
        fpa_error error{};
        fpa_kernel *kernel = nullptr;
        check(fpa_open_bundle(bundle, head, nullptr, &kernel, &error), error);
        kernel_.reset(kernel);
        for (int i = 0; i < about().weight_count; i++) {
            weights_.push_back(model_.find(about().weight_names[i]));
            weight_list_.push_back(weights_.back()->get());
        }
    }

    const fpa_description &about() const
    {
        return *fpa_describe(kernel_.get());
    }

    sequence begin() const
    {
        return {std::vector<float>(static_cast<std::size_t>(heads * about().state_elements)), 0};
    }

    // A prompt, or one token behind what the sequence has: the state goes on. It allocates only where a call needs more
    // scratch memory than any before it.
    void eval(sequence &s, activations &x)
    {
        view q(x.q.data(), {1, x.tokens, heads, about().d}), k(x.k.data(), {1, x.tokens, heads, about().d});
        view v(x.v.data(), {1, x.tokens, heads, about().dv}), o(x.o.data(), {1, x.tokens, heads, about().dv});
        view state(s.state.data(), {1, heads, about().state_elements});
        fpa_tensors tensors{};
        tensors.q = q.get();
        tensors.k = k.get();
        tensors.v = v.get();
        tensors.o = o.get();
        tensors.state_in = s.tokens > 0 ? state.get() : nullptr; // the first tokens find an empty state
        tensors.state_out = state.get();
        tensors.weights = weight_list_.data();
        fpa_error error{};
        reserve(tensors);
        check(fpa_forward(kernel_.get(), FPA_FORM_AUTO, &tensors, workspace_.get(), workspace_size_, &error),
              error);
        s.tokens += x.tokens;
    }

  private:
    void reserve(const fpa_tensors &tensors)
    {
        fpa_error error{};
        std::size_t size = 0;
        check(fpa_workspace_size(kernel_.get(), FPA_FORM_AUTO, &tensors, &size, &error), error);
        if (workspace_ && size <= workspace_size_)
            return;
        workspace_.reset(std::aligned_alloc(64, (size + 64) / 64 * 64));
        if (!workspace_)
            throw std::bad_alloc();
        workspace_size_ = size;
    }

    mapped_model model_;
    std::unique_ptr<fpa_kernel, close_kernel> kernel_;
    std::vector<std::unique_ptr<view>> weights_;
    std::vector<const DLTensor *> weight_list_;
    std::unique_ptr<void, free_memory> workspace_;
    std::size_t workspace_size_ = 0;
};

std::vector<float> numbers(std::int64_t count, unsigned seed) // in place of a model's layer
{
    std::vector<float> made(static_cast<std::size_t>(count));
    for (float &number : made) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5f;
    }
    return made;
}

activations layer(const fpa_description &about, std::int64_t tokens, unsigned seed)
{
    return {tokens, numbers(tokens * heads * about.d, seed), numbers(tokens * heads * about.d, seed + 1),
            numbers(tokens * heads * about.dv, seed + 2),
            std::vector<float>(static_cast<std::size_t>(tokens * heads * about.dv))};
}

void converse(engine &e)
{
    std::vector<sequence> all;
    for (unsigned s = 0; s < sequences; s++) {
        all.push_back(e.begin());
        activations x = layer(e.about(), prompt, 100 * s);
        e.eval(all[s], x);
    }
    for (unsigned step = 0; step < reply; step++) {
        for (unsigned s = 0; s < sequences; s++) {
            activations x = layer(e.about(), 1, 1000 + 100 * s + step);
            e.eval(all[s], x);
            std::printf("sequence %u, token %lld: %.5f\n", s, static_cast<long long>(all[s].tokens),
                        static_cast<double>(x.o[0]));
        }
    }
}

} // namespace

int main(int count, char **arguments)
{
    if (count != 4) {
        std::fprintf(stderr, "usage: engine BUNDLE HEAD WEIGHTS\n");
        return 2;
    }
    try {
        engine e(arguments[1], arguments[2], arguments[3]);
        std::fprintf(stderr, "%s for %s, %lld numbers a state\n", e.about().name, e.about().target,
                     static_cast<long long>(e.about().state_elements));
        converse(e);
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "engine: %s\n", problem.what());
        return 1;
    }
    return 0;
}
