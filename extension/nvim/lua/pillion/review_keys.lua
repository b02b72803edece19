-- The keys of a review. They are mapped while a buffer shows an open review; afterwards the earlier mappings are
-- restored.
local config = require("pillion.config")

local actions = {
  next = "next",
  prev = "prev",
  accept = "accept",
  reject = "reject",
  accept_all = "accept-all",
  reject_all = "reject-all",
  edit = "edit",
  comment = "comment",
  reset = "reset",
  split = "split",
}

-- Keys that only move the cursor or open a window work immediately; the others decide.
local harmless = { next = true, prev = true, edit = true, split = true }

local M = {
  -- For so many milliseconds after a proposal appears, keys that decide are ignored: they were typed for something
  -- else.
  grace = 300,
}

---@return number milliseconds of a clock that only goes forward
function M.now()
  return vim.loop.hrtime() / 1e6
end

-- Reports whether something appeared so recently that a key was not meant for it.
---@param since number of M.now()
---@return boolean
function M.too_early(since)
  return M.now() - since < M.grace
end

-- Defines the keys in a buffer; returns what they were before, for M.remove.
---@param buf integer
---@param review pillion.Review
---@return table<string, table|false> before by key
function M.add(buf, review)
  local mapped = {}
  for name, plug in pairs(actions) do
    local lhs = config.options.keymaps[name]
    if lhs then
      local before = vim.api.nvim_buf_call(buf, function()
        return vim.fn.maparg(lhs, "n", false, true)
      end)
      mapped[lhs] = before.buffer == 1 and before or false
      local keys = vim.api.nvim_replace_termcodes("<Plug>(pillion-" .. plug .. ")", true, true, true)
      vim.keymap.set("n", lhs, function()
        if harmless[name] or not M.too_early(review.shown_at) then
          vim.api.nvim_feedkeys(keys, "m", false)
        end
      end, { buffer = buf, nowait = true, desc = "Pillion: " .. name:gsub("_", " ") })
    end
  end
  return mapped
end

-- Removes the keys and restores the mappings before.
---@param buf integer
---@param mapped table<string, table|false>
function M.remove(buf, mapped)
  for lhs, before in pairs(mapped) do
    pcall(vim.keymap.del, "n", lhs, { buffer = buf })
    if before then
      vim.api.nvim_buf_call(buf, function()
        pcall(vim.fn.mapset, "n", false, before)
      end)
    end
  end
end

return M
