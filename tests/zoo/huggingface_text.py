"""Language models of Hugging Face, unmodified, two layers of width 32 with random weights."""

from __future__ import annotations

from functools import partial

import torch
import transformers as hf
from zoo_registry import Brought, zoo

WORDS, TOKENS, WIDTH, HEADS, LAYERS, INNER = 50, 8, 32, 4, 2, 64
model = partial(zoo.model, "huggingface")

# The names that most configurations use. Those that use others are written out below.
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def ids() -> torch.Tensor:
    return torch.randint(3, WORDS, (1, TOKENS))


@model(fast=True)
def gpt2() -> Brought:
    config = hf.GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS)
    return hf.GPT2Model(config), (ids(),)


@model()
def gpt2_language_model() -> Brought:
    config = hf.GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, use_cache=False)
    return hf.GPT2LMHeadModel(config), (), {"input_ids": ids()}


@model()
def gpt2_eager_attention() -> Brought:
    config = hf.GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, use_cache=False)
    config._attn_implementation = "eager"
    return hf.GPT2Model(config), (ids(),)


@model()
def gpt_neo() -> Brought:
    config = hf.GPTNeoConfig(
        vocab_size=WORDS,
        max_position_embeddings=64,
        hidden_size=WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
    )
    return hf.GPTNeoModel(config), (ids(),)


@model()
def gpt_neox() -> Brought:
    return hf.GPTNeoXModel(hf.GPTNeoXConfig(**SIZES)), (ids(),)


@model()
def gptj() -> Brought:
    config = hf.GPTJConfig(vocab_size=WORDS, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, rotary_dim=4)
    return hf.GPTJModel(config), (ids(),)


@model()
def opt() -> Brought:
    return hf.OPTModel(hf.OPTConfig(**SIZES, ffn_dim=INNER, word_embed_proj_dim=WIDTH)), (ids(),)


@model()
def bloom() -> Brought:
    return hf.BloomModel(hf.BloomConfig(vocab_size=WORDS, hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS)), (ids(),)


@model()
def falcon() -> Brought:
    return hf.FalconModel(hf.FalconConfig(**SIZES)), (ids(),)


@model(fast=True)
def llama() -> Brought:
    return hf.LlamaModel(hf.LlamaConfig(**SIZES)), (ids(),)


@model()
def llama_grouped_queries() -> Brought:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, num_key_value_heads=2)), (), {"input_ids": ids(), "use_cache": False}


@model()
def llama_bfloat16() -> Brought:
    return hf.LlamaModel(hf.LlamaConfig(**SIZES)).to(torch.bfloat16), (ids(),)


@model()
def mistral() -> Brought:
    return hf.MistralModel(hf.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=4)), (ids(),)


@model()
def mixtral() -> Brought:
    config = hf.MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)
    return hf.MixtralModel(config), (ids(),)


@model()
def qwen2() -> Brought:
    return hf.Qwen2Model(hf.Qwen2Config(**SIZES, num_key_value_heads=2)), (ids(),)


@model()
def gemma() -> Brought:
    return hf.GemmaModel(hf.GemmaConfig(**SIZES, num_key_value_heads=1, head_dim=8)), (ids(),)


@model()
def phi() -> Brought:
    return hf.PhiModel(hf.PhiConfig(**SIZES)), (ids(),)


@model()
def mamba() -> Brought:
    config = hf.MambaConfig(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=1, state_size=4, use_cache=False)
    return hf.MambaModel(config), (ids(),)


@model(fast=True)
def bert() -> Brought:
    return hf.BertModel(hf.BertConfig(**SIZES)), (ids(),)


@model()
def bert_masked() -> Brought:
    mask = torch.ones(1, TOKENS, dtype=torch.long)
    mask[:, -3:] = 0
    return hf.BertModel(hf.BertConfig(**SIZES)), (), {"input_ids": ids(), "attention_mask": mask}


@model()
def bert_classifier() -> Brought:
    return hf.BertForSequenceClassification(hf.BertConfig(**SIZES, num_labels=3)), (ids(),)


@model()
def bert_encoder_of_embeddings() -> Brought:
    return hf.BertModel(hf.BertConfig(**SIZES)), (), {"inputs_embeds": torch.randn(1, TOKENS, WIDTH)}


@model()
def roberta() -> Brought:
    return hf.RobertaModel(hf.RobertaConfig(**SIZES)), (ids(),)


@model()
def distilbert() -> Brought:
    config = hf.DistilBertConfig(vocab_size=WORDS, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER)
    return hf.DistilBertModel(config), (ids(),)


@model()
def albert() -> Brought:
    return hf.AlbertModel(hf.AlbertConfig(**SIZES, embedding_size=16)), (ids(),)


@model()
def electra() -> Brought:
    return hf.ElectraModel(hf.ElectraConfig(**SIZES, embedding_size=16)), (ids(),)


@model()
def deberta_v2() -> Brought:
    config = hf.DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"])
    return hf.DebertaV2Model(config), (ids(),)


@model()
def mpnet() -> Brought:
    return hf.MPNetModel(hf.MPNetConfig(**SIZES)), (ids(),)


@model()
def fnet() -> Brought:
    return hf.FNetModel(hf.FNetConfig(**SIZES)), (ids(),)


@model()
def bigbird() -> Brought:
    config = hf.BigBirdConfig(**SIZES, attention_type="block_sparse", block_size=4, num_random_blocks=1)
    return hf.BigBirdModel(config), (torch.randint(3, WORDS, (1, 64)),)


@model()
def longformer() -> Brought:
    config = hf.LongformerConfig(**SIZES, attention_window=[4, 4])
    return hf.LongformerModel(config), (torch.randint(3, WORDS, (1, 16)),)


@model()
def xlnet() -> Brought:
    config = hf.XLNetConfig(vocab_size=WORDS, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=INNER)
    return hf.XLNetModel(config), (ids(),)


@model()
def t5_encoder() -> Brought:
    config = hf.T5Config(vocab_size=WORDS, d_model=WIDTH, d_kv=8, d_ff=INNER, num_layers=LAYERS, num_heads=HEADS)
    return hf.T5EncoderModel(config), (ids(),)


@model()
def t5() -> Brought:
    config = hf.T5Config(vocab_size=WORDS, d_model=WIDTH, d_kv=8, d_ff=INNER, num_layers=1, num_heads=HEADS)
    return hf.T5Model(config), (), {"input_ids": ids(), "decoder_input_ids": ids()}


@model()
def bart() -> Brought:
    config = hf.BartConfig(
        vocab_size=WORDS,
        d_model=WIDTH,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        max_position_embeddings=64,
    )
    return hf.BartModel(config), (), {"input_ids": ids(), "decoder_input_ids": ids()}


@model()
def switch_transformer_encoder() -> Brought:
    config = hf.SwitchTransformersConfig(
        vocab_size=WORDS,
        d_model=WIDTH,
        d_kv=8,
        d_ff=INNER,
        num_layers=2,
        num_heads=HEADS,
        num_experts=4,
        num_sparse_encoder_layers=1,
    )
    return hf.SwitchTransformersEncoderModel(config), (ids(),)
